"""Label flip: the maps, their share of rows, and which part of a run sees the false labels."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_component
from engine_harness import make_network, make_task, make_trainer
from fedcohort.attack.label_flip import LabelFlip
from fedcohort.data.federation import Federation, Shard
from fedcohort.dataset.base import Raw
from fedcohort.rng import new_generator
from fedcohort.round.attackers import falsify_client_labels
from fedcohort.round.populations import Populations
from fedcohort.signal.base import Computed, Measured, Reported, Static, find_signal, list_signals
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from fedcohort.training.evaluate import SignalMeasurer
from optional_values import not_none
from round_harness import run_without_files
from run_harness import compose_overrides, load_facts, startup_notices

LABELS = np.arange(10).repeat(10)


def test_classes_are_reversed() -> None:
    flipped = make_component("attack", "label_flip").relabel(LABELS, 10, new_generator(0, "attack_labels"))
    assert flipped.tolist() == (9 - LABELS).tolist()
    assert make_component("attack", "label_flip").relabel(np.array([0, 1, 2]), 3, new_generator(0, "x")).tolist() == [
        2,
        1,
        0,
    ]


def test_random_labels_are_of_other_classes() -> None:
    flipped = make_component("attack", "label_flip", map="random").relabel(
        LABELS, 10, new_generator(0, "attack_labels")
    )
    assert (flipped != LABELS).all()
    assert set(flipped.tolist()) == set(range(10))


def test_labels_of_a_single_class_are_not_flipped() -> None:
    for map in ("random", "reverse"):
        flipped = make_component("attack", "label_flip", map=map).relabel(
            np.zeros(4, int), 1, new_generator(0, "attack_labels")
        )
        assert flipped.tolist() == [0] * 4


def test_a_share_of_the_rows_is_flipped() -> None:
    flipped = make_component("attack", "label_flip", share_rows=0.25).relabel(
        LABELS, 10, new_generator(0, "attack_labels")
    )
    assert (flipped != LABELS).sum() == 25
    assert (np.arange(10).repeat(10) == LABELS).all()


def test_only_the_attackers_labels_change() -> None:
    """They do in both of its sets, which the two splits of clients' samples are."""
    federation = load_facts(compose_overrides("dataset=digits", "clients=12", "split.client_val=0.2")).federation
    poisoned = falsify_client_labels(make_component("attack", "label_flip"), np.array([2, 7]), federation, 0)
    for split in ("train", "val"):
        for client in range(12):
            true, labels = (getattr(f, split).client_samples(client)[1] for f in (federation, poisoned))
            assert len(true)
            assert labels.tolist() == ((9 - true) if client in (2, 7) else true).tolist()
    assert poisoned.test is federation.test
    assert poisoned.server_val is federation.server_val
    assert falsify_client_labels(make_component("attack", "sign_flip"), np.array([2]), federation, 0) is federation


def test_training_and_validation_labels_have_draws_of_their_own() -> None:
    federation = load_facts(compose_overrides("dataset=digits", "clients=12", "split.client_val=0.5")).federation
    attack = make_component("attack", "label_flip", map="random")
    poisoned = falsify_client_labels(attack, np.array([2]), federation, 5)
    for split, purpose in (("train", "attack_labels"), ("val", "attack_val_labels")):
        true, labels = (getattr(f, split).client_samples(2)[1].numpy() for f in (federation, poisoned))
        assert labels.tolist() == attack.relabel(true, 10, new_generator(5, purpose, client=2)).tolist()


N_CLASSES, ATTACKERS = 3, np.array([1])
SIGNAL_OPTIONS: dict[str, dict[str, Any]] = {
    "batch_loss": {"batch": 5, "key": 1},
    "class_loss": {"n_classes": N_CLASSES},
    "compressed_gradient": {"rate": 0.5, "way": "random", "key": 1},
    "dht": {"q": 0.7, "epochs": 2, "lr": 0.1, "batch": 5, "seed": 3},
    "gradient_moments": {"batch": 5, "key": 1},
    "gradient_std": {"batch": 5, "key": 1},
    "robust_loss": {"alpha": 0.1, "beta": 1.0, "A": 4.0},
    "shadow_loss": {"trainers": [0, 1]},
    "greedy_gain": {"cohort": 2, "direction": "down"},
}
UNLABELLED = {
    "expected_down_s",
    "expected_s",
    "expected_unit_s",
    "expected_up_s",
    "n_train",
    "noise_rate",
    "pass_units",
}
WORK = {"duration", "lr", "n_used", "response_norm", "steps"}  # reports about the work, whatever the labels


def _make_attribute_federation() -> Federation:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 5)).astype(np.float32), rng.integers(0, N_CLASSES, 120)
    raw = Raw("toy", x, y, x[:30], y[:30], N_CLASSES, train_attribute=np.arange(120) % 2)
    components = (make_component("partition", "iid"), make_component("label_noise", "none"))
    return build_federation(raw, SplitOptions(*components, seed=0, clients=3, server_val=0.1, client_val=0.3))


def _replace_labels(federation: Federation) -> Federation:
    """Return the federation in which client 1 has the classes 2 - y."""
    shards = {}
    for split in ("train", "val"):
        shard = getattr(federation, split)
        owner = np.repeat(np.arange(3), np.diff(shard.offsets))
        labels = np.where(owner == 1, N_CLASSES - 1 - shard.y.numpy(), shard.y.numpy())
        shards[split] = replace(shard, y=torch.from_numpy(labels))
    return replace(federation, train=shards["train"], val=shards["val"])


def _report_losses(samples: Any, losses: np.ndarray) -> Any:
    return {}, samples.report_losses(1.0, None, losses)


def _measure(federation: Federation, name: str) -> np.ndarray:
    """Return the values of a signal of all clients, at registration or of the same model."""
    signal, clients, options = find_signal(name), np.arange(3), SIGNAL_OPTIONS.get(name, {})
    if isinstance(signal, Static):
        facts = Populations.from_federation(federation, 2).facts
        return np.asarray(facts[signal.fact], dtype=np.float64)
    trainer = make_trainer(federation, make_network(), batch=4)
    if isinstance(signal, Reported):
        samples = make_component("samples", "fedbalancer")
        store_losses = partial(_report_losses, samples) if "loss_" in name else None
        tasks = [replace(make_task(k, loss_after=True), store_losses=store_losses) for k in range(3)]
        return np.array([signal.read(update) for update in trainer.train_clients(tasks, {})])
    access = SignalMeasurer(trainer.server, trainer.worker, federation, trainer.train_whole_job)
    if isinstance(signal, Measured):
        return np.asarray(signal.measure(access, clients, options))
    assert isinstance(signal, Computed)
    return np.asarray(signal.compute(access, 0, clients, options))


def _is_of_labels(name: str) -> bool:
    is_of_client = isinstance(find_signal(name), Static | Measured | Computed | Reported)
    return is_of_client and name not in UNLABELLED | WORK


@pytest.mark.parametrize("name", [name for name in list_signals() if _is_of_labels(name)])
def test_an_attacker_reports_on_its_false_labels(name: str) -> None:
    """Every signal of labels has the values of a federation whose client 1 has the labels 2 - y."""
    federation = _make_attribute_federation()
    poisoned = falsify_client_labels(make_component("attack", "label_flip"), ATTACKERS, federation, 0)
    values, expected, true = (_measure(f, name) for f in (poisoned, _replace_labels(federation), federation))
    np.testing.assert_array_equal(values, expected)
    if name not in ("dht", "greedy_gain", "loss_count"):  # the imbalance of reversed classes is the same
        assert (values[1] != true[1]).any()


def test_labels_are_replaced_only_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    federation, attack = _make_attribute_federation(), make_component("attack", "label_flip")
    x, y = federation.val.x[:0], federation.val.y[:0]
    no_samples = Shard(x, y, y, np.zeros(4, dtype=np.int64))
    relabelled_sizes = list[int]()

    def note_size(attack: LabelFlip, labels: np.ndarray, n_classes: int, rng: object) -> np.ndarray:
        relabelled_sizes.append(len(labels))
        return labels

    monkeypatch.setattr(LabelFlip, "relabel", note_size)
    falsify_client_labels(attack, ATTACKERS, replace(federation, val=no_samples), 0)
    assert relabelled_sizes == [federation.n_train[1]]


def test_groups_of_an_attacker_have_false_classes_and_true_attributes() -> None:
    federation = _make_attribute_federation()
    poisoned = falsify_client_labels(make_component("attack", "label_flip"), ATTACKERS, federation, 0)
    groups, true = (not_none(f.group_counts).reshape(3, N_CLASSES, 2) for f in (poisoned, federation))
    np.testing.assert_array_equal(groups[1], true[1][::-1])
    np.testing.assert_array_equal(groups[[0, 2]], true[[0, 2]])
    np.testing.assert_array_equal(groups.sum(1), true.sum(1))
    np.testing.assert_array_equal(groups.sum(2), poisoned.label_counts)
    assert (groups[1] != true[1]).any()


@pytest.mark.parametrize("name", sorted(UNLABELLED))
def test_other_signals_of_registration_stay(name: str) -> None:
    federation = _make_attribute_federation()
    poisoned = falsify_client_labels(make_component("attack", "label_flip"), ATTACKERS, federation, 0)
    np.testing.assert_array_equal(_measure(poisoned, name), _measure(federation, name))


def test_clients_are_evaluated_on_their_true_labels() -> None:
    """Before the first round attackers report the loss of false labels, and the table has that of the true ones."""
    overrides = ("selector=powd", "selector.candidates=12", "rounds=1", "model=logreg")
    false = run_without_files(*overrides, "attack=label_flip", "attack.fraction=0.5")
    true = run_without_files(*overrides)
    attackers = false.reports[0].clients["attacker"] == 1
    np.testing.assert_array_equal(false.reports[0].clients["loss"], true.reports[0].clients["loss"])
    assert attackers.sum() == 6
    trained = false.last.cohort[attackers[false.last.cohort]]
    assert len(trained)
    assert false.last.fingerprint != true.last.fingerprint


@pytest.mark.parametrize("options", ["attack.fraction=0", "attack.share_rows=0"])
def test_an_attack_without_effect_is_reported(options: str) -> None:
    assert f"attack=label_flip has no effect with {options}" in startup_notices("attack=label_flip", options)
