"""False updates: what attackers know, how the collector replaces them, and that groups and order make no difference."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agg_harness import make_layout, make_update
from config_options import make_component
from fedcohort.flat import Layout, TensorBlock
from fedcohort.rng import new_generator
from fedcohort.round import aggregate
from fedcohort.round import arrivals as arrivals_module
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.attackers import AttackCollector, RoundAttack, compute_update_stats
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.types import ClientUpdate, UpdateGroup
from optional_values import not_none
from run_harness import run_training
from signal_kinds import find_reported

HONEST_UPDATES = {0: [1.0, 0.0], 1: [2.0, 2.0], 3: [3.0, 1.0]}
ATTACKER_UPDATES = {2: [4.0, 0.0], 4: [6.0, 2.0]}  # by the attackers


def identity(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def collect(attack: Any, updates: Sequence[ClientUpdate], round: int = 0, **options: Any) -> Arrivals:
    cohort = np.array(sorted(update.client for update in updates))
    collector = AttackCollector(
        RoundAttack(attack, np.array([2, 4, 9]), 0, round),
        make_layout(2),
        cohort,
        np.ones(len(cohort)),
        CollectorOptions(report_readers={"update_norm": find_reported("update_norm").read}, **options),
    )
    for update in updates:
        collector.add_client_update(update)
    return collector.sum_over_ranks(identity, identity)


def updates(*excluded_ids: int) -> list[ClientUpdate]:
    rows = {client: row for client, row in {**HONEST_UPDATES, **ATTACKER_UPDATES}.items() if client not in excluded_ids}
    return [make_update(client, row) for client, row in rows.items()]


def test_attackers_send_from_the_honest_mean_and_deviation() -> None:
    """(1, 0), (2, 2), (3, 1): mean (2, 1), deviation (1, 1). Signals and the mean are of the false updates."""
    collected = collect(make_component("attack", "alie", z=2.0), updates(), keeps_updates=True)
    assert collected.updates is not None
    np.testing.assert_allclose(collected.updates, [[1, 0], [2, 2], [0, -1], [3, 1], [0, -1]], atol=1e-12)
    assert collected.reports["update_norm"].tolist() == pytest.approx([1, 8**0.5, 1, 10**0.5, 1])
    assert collected.mean is not None
    assert collected.mean.tolist() == pytest.approx([6 / 5, 1 / 5])


def test_attackers_that_know_only_their_own_updates() -> None:
    """(4, 0) and (6, 2): mean (5, 1), deviation (2, 2)^.5. A single one has a deviation of 0."""
    collected = collect(make_component("attack", "alie", z=1.0, knows="own"), updates(), keeps_updates=True)
    assert collected.updates is not None
    np.testing.assert_allclose(collected.updates[2], [5 - 2**0.5, 1 - 2**0.5])
    single = collect(make_component("attack", "alie", z=1.0, knows="own"), updates(4), keeps_updates=True)
    assert single.updates is not None
    assert single.updates[2].tolist() == [4, 0]


def test_without_an_honest_update_the_trained_ones_are_sent() -> None:
    collected = collect(make_component("attack", "ipm"), updates(0, 1, 3), keeps_updates=True)
    assert collected.updates is not None
    assert collected.updates.tolist() == list(ATTACKER_UPDATES.values())


def test_updates_that_are_not_finite_are_not_known_and_false_ones_are_checked() -> None:
    nan_update = make_update(5, [float("nan"), 0.0])
    collected = collect(make_component("attack", "ipm", epsilon=1.0), [*updates(), nan_update], keeps_updates=True)
    assert collected.clients.tolist() == [0, 1, 2, 3, 4]
    assert collected.updates is not None
    assert collected.updates[2].tolist() == [-2, -1]
    diverged = make_update(9, [float("inf"), 0.0])  # an attacker that sends -(2, 1) all the same
    assert 9 in collect(make_component("attack", "ipm", epsilon=1.0), [*updates(), diverged]).clients
    limited = collect(make_component("attack", "scaling", factor=1e3), updates(), max_update_norm=100.0)
    assert limited.clients.tolist() == [0, 1, 3]
    assert limited.dropped_ids.tolist() == [2, 4]


@pytest.mark.parametrize("choice", ["alie", "gaussian", "sign_flip"])
def test_order_matrix_and_groups_make_no_difference(choice: str) -> None:
    attack, rows = make_component("attack", choice), updates()
    stacked, backward = collect(attack, rows, keeps_updates=True), collect(attack, rows[::-1])

    def total(weights: Any) -> torch.Tensor:
        return sum(
            (w * rows[i].delta for i, w in ((k, weights.get(r.client, 0.0)) for k, r in enumerate(rows))),
            start=torch.zeros(2).double(),
        )

    group = UpdateGroup(len(rows), total)
    grouped = [make_update(row.client, row.delta.tolist(), group=group) for row in rows]
    for variant in (backward, collect(attack, grouped)):
        torch.testing.assert_close(variant.mean, stacked.mean, atol=1e-12, rtol=0)
        assert variant.clients.tolist() == stacked.clients.tolist()


@pytest.mark.parametrize("choice", ["alie", "gaussian", "ipm"])
def test_a_false_update_is_zero_in_tensors_that_the_attacker_does_not_send(choice: str) -> None:
    """Clients 2 and 4 attack; client 2 sends the second of two tensors, and client 4 both."""
    tensor_masks = {2: np.array([False, True]), 4: None}
    round_attack = RoundAttack(make_component("attack", choice), np.array([2, 4]), 0, 0, tensor_masks)
    layout = Layout((TensorBlock("first", (1,), 0), TensorBlock("second", (1,), 1)), (), ())
    collector = AttackCollector(round_attack, layout, np.arange(5), np.ones(5), CollectorOptions(keeps_updates=True))
    for update in updates():
        collector.add_client_update(update)
    rows = not_none(collector.sum_over_ranks(identity, identity).updates)[[2, 4]]
    assert (rows != 0).tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize(
    ("knows", "masks", "mean", "deviation"),
    [
        ("honest", {0: [True, False], 1: [True, True], 3: [False, True]}, [1.5, 1.5], [0.5**0.5, 0.5**0.5]),
        ("honest", {0: [True, False], 1: [True, False], 3: [True, False]}, [2, 0], [1, 0]),
        ("honest", {1: [True, False], 3: [False, False]}, [1.5, 0], [0.5**0.5, 0]),
        ("own", {4: [False, True]}, [4, 1], [0, 2**0.5]),
    ],
)
def test_statistics_of_a_tensor_are_over_its_senders(
    knows: str, masks: Mapping[int, list[bool]], mean: list[float], deviation: list[float]
) -> None:
    """The collector has no number of a client in a tensor that it does not send; the codec makes this part 0."""
    tensor_masks = {client: np.array(mask) for client, mask in masks.items()}
    attack = make_component("attack", "alie", z=1.0, knows=knows)
    layout = Layout((TensorBlock("first", (1,), 0), TensorBlock("second", (1,), 1)), (), ())
    round_attack = RoundAttack(attack, np.array([2, 4]), 0, 0, tensor_masks)
    collector = AttackCollector(round_attack, layout, np.arange(5), np.ones(5), CollectorOptions(keeps_updates=True))
    for client, row in {**HONEST_UPDATES, **ATTACKER_UPDATES}.items():
        sent = [float(v) if is_sent else 0.0 for v, is_sent in zip(row, masks.get(client, [True] * 2), strict=True)]
        collector.add_client_update(make_update(client, sent))
    false_update = not_none(collector.sum_over_ranks(identity, identity).updates)[2]
    np.testing.assert_allclose(false_update, np.array(mean) - deviation, atol=1e-12)


def test_the_statistics_of_a_tensor_are_those_of_a_model_with_this_tensor_only() -> None:
    """To the bit, for numbers of senders that differ between the tensors."""
    blocks = tuple(TensorBlock(f"{i}", (i + 1,), sum(range(i + 1))) for i in range(6))
    moments = torch.from_numpy(np.random.default_rng(0).random((2, 21))) + torch.tensor([[0.0], [9.0]])
    counts = torch.tensor([9.0, 2, 7, 5, 1, 2, 3, 7]).double()
    stats = compute_update_stats(counts, moments, Layout(blocks, (), ()))
    for block, count in zip(blocks, counts[2:], strict=True):
        columns = slice(block.offset, block.offset + block.size)
        single_counts = torch.tensor([9.0, 2, float(count)]).double()
        single = compute_update_stats(single_counts, moments[:, columns], make_layout(block.size))
        assert torch.equal(not_none(stats.mean)[columns], not_none(single.mean))
        assert torch.equal(not_none(stats.std)[columns], not_none(single.std))


def test_attackers_that_know_no_tensor_send_what_they_trained() -> None:
    masks = {client: np.array([False]) for client in HONEST_UPDATES}
    round_attack = RoundAttack(make_component("attack", "ipm"), np.array([2, 4]), 0, 0, masks)
    options = CollectorOptions(keeps_updates=True)
    collector = AttackCollector(round_attack, make_layout(2), np.arange(5), np.ones(5), options)
    for client, row in {**{client: [0.0, 0.0] for client in masks}, **ATTACKER_UPDATES}.items():
        collector.add_client_update(make_update(client, row))
    rows = not_none(collector.sum_over_ranks(identity, identity).updates)[[2, 4]]
    assert rows.tolist() == list(ATTACKER_UPDATES.values())


def test_only_senders_of_a_tensor_move_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyramidFL leaves tensors out. Noise of attackers that did not send a tensor was in its mean over the senders."""
    differences = list[float]()

    def compare_means(arrivals: Arrivals, tensor_masks: Mapping[int, Any], layout: Layout) -> Arrivals:
        filled = arrivals_module.fill_unsent_tensors(arrivals, tensor_masks, layout)
        for i, block in enumerate(layout.parameters):
            is_sender = [tensor_masks[k] is None or tensor_masks[k][i] for k in arrivals.clients.tolist()]
            columns = slice(block.offset, block.offset + block.size)
            if any(is_sender):
                p = torch.from_numpy(arrivals.weights * is_sender)
                mean = p @ not_none(arrivals.updates)[:, columns] / p.sum()
                differences.append(float((not_none(filled.mean)[columns] - mean).abs().max()))
        return filled

    monkeypatch.setattr(aggregate, "fill_unsent_tensors", compare_means)
    pyramidfl = ("selector=pyramidfl", "selector.low=0.5", "selector.high=0.9", "device=shifted_exponential")
    attack = ("attack=gaussian", "attack.fraction=0.4", "attack.sigma=1", "agg=norm_clipping", "agg.norm=1e9")
    run_training(tmp_path, *pyramidfl, *attack, "model=mlp", "client.epochs=1", "rounds=4")
    assert len(differences) > 10
    assert max(differences) < 1e-9


def test_noise_is_keyed_by_round_and_client() -> None:
    first, repeat, later = (
        collect(make_component("attack", "gaussian", sigma=1.0), updates(), round=round, keeps_updates=True).updates
        for round in (0, 0, 1)
    )
    assert first is not None
    assert repeat is not None
    assert later is not None
    np.testing.assert_allclose(first[2], new_generator(0, "attack_update", 0, 2).standard_normal(2))
    assert torch.equal(first, repeat)
    assert not torch.equal(first[2], later[2])
    assert not torch.equal(first[2], first[4])


def test_a_constant_has_no_deviation() -> None:
    """Sums of squares are rounded: the variance of three equal numbers may come out below 0."""
    value = torch.full((2,), 0.1).double()
    moments = torch.stack([3 * value, 3 * value.square() * (1 - 1e-15)])
    stats = compute_update_stats(torch.tensor([3.0, 1, 3]), moments, make_layout(2))
    assert stats.std is not None
    assert stats.std.tolist() == [0, 0]
    assert (stats.n_honest, stats.n_attackers) == (3, 1)
