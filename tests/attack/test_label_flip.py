"""Label flip: the maps, their share of rows, and which part of a run sees the false labels."""

from pathlib import Path

import numpy as np
import pytest

from config_options import make_component
from fedcohort.rng import new_generator
from fedcohort.round.attackers import falsify_client_labels
from run_harness import compose_overrides, load_facts, run_training, startup_notices

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


def test_only_the_attackers_training_labels_change() -> None:
    federation = load_facts(compose_overrides("dataset=digits", "clients=12")).federation
    poisoned = falsify_client_labels(make_component("attack", "label_flip"), np.array([2, 7]), federation, 0)
    for client in range(12):
        true, poisoned_labels = federation.train.client_samples(client)[1], poisoned.train.client_samples(client)[1]
        assert poisoned_labels.tolist() == ((9 - true) if client in (2, 7) else true).tolist()
    assert poisoned.val is federation.val
    assert (poisoned.label_counts[2] == federation.label_counts[2][::-1]).all()
    assert falsify_client_labels(make_component("attack", "sign_flip"), np.array([2]), federation, 0) is federation


def test_clients_are_evaluated_on_their_true_labels(tmp_path: Path) -> None:
    """Before the first round attackers report the loss of false labels, and the table has that of the true ones."""
    overrides = ("selector=powd", "selector.candidates=12", "rounds=1", "model=logreg")
    false = run_training(tmp_path / "false", *overrides, "attack=label_flip", "attack.fraction=0.5")
    true = run_training(tmp_path / "true", *overrides)
    attackers = false.reports[0].clients["attacker"] == 1
    np.testing.assert_array_equal(false.reports[0].clients["loss"], true.reports[0].clients["loss"])
    assert attackers.sum() == 6
    trained = false.last.cohort[attackers[false.last.cohort]]
    assert len(trained)
    assert false.last.fingerprint != true.last.fingerprint


@pytest.mark.parametrize("options", ["attack.fraction=0", "attack.share_rows=0"])
def test_an_attack_without_effect_is_reported(options: str) -> None:
    assert f"attack=label_flip has no effect with {options}" in startup_notices("attack=label_flip", options)
