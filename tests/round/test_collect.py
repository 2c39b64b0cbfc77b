"""Sums do not depend on who comes first, and a rank's part is a part."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from agg_harness import collect_updates, make_layout, make_update
from config_options import make_component
from fedcohort.flat import FlatModel
from fedcohort.round.arrivals import apply_weight_override, replace_update_weights
from fedcohort.round.collect import NUMBERS_PER_CHUNK, Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.types import AggregationOverride, ClientUpdate, UpdateGroup
from optional_values import not_none


def updates(n: int = 5, p: int = 40) -> list[ClientUpdate]:
    g = torch.Generator().manual_seed(0)
    return [
        make_update(
            k, torch.randn(p, generator=g, dtype=torch.float64).tolist(), n=k + 1, buffers=torch.randn(2, generator=g)
        )
        for k in range(n)
    ]


def test_two_ranks_give_the_sums_of_one_process() -> None:
    # dealing the same clients over two gatherers and adding their tensors is what the all-reduce does
    rows, agg, layout = updates(), make_component("agg", "fedavg"), make_layout(40, 2)
    one_process = collect_updates(agg, rows, layout)
    ranks = []
    for part in (rows[:2], rows[2:]):
        cohort = np.arange(5)
        weights = np.arange(1.0, 6.0)
        g = Collector(layout, cohort, weights, CollectorOptions(), 2)
        for update in part:
            g.add_client_update(update)
        ranks.append(g)
    other_rank = ranks[1]
    tensors = iter([torch.from_numpy(other_rank.arrival_table), other_rank.buffer_sum, other_rank.update_sum])
    total = ranks[0].sum_over_ranks(lambda t: t + next(tensors), lambda t: t)
    torch.testing.assert_close(total.mean, one_process.mean, atol=1e-12, rtol=0)
    torch.testing.assert_close(total.buffers, one_process.buffers, atol=1e-6, rtol=0)
    assert total.clients.tolist() == one_process.clients.tolist()


def test_the_order_of_arrival_changes_at_most_rounding() -> None:
    # The engine adds in a fixed order, so that runs repeat bit for bit; the sum itself is order-free to rounding.
    rows, agg = updates(4), make_component("agg", "fedavg")
    reference = collect_updates(agg, rows, make_layout(40, 2))
    for order in itertools.permutations(range(4)):
        permuted = collect_updates(agg, [rows[i] for i in order], make_layout(40, 2))
        torch.testing.assert_close(permuted.mean, reference.mean, atol=1e-14, rtol=0)
        assert permuted.clients.tolist() == reference.clients.tolist()


def test_advice_changes_the_weights() -> None:
    agg = make_component("agg", "fedavg")
    collected = collect_updates(agg, [make_update(0, [4.0, 0.0]), make_update(1, [0.0, 4.0])], keep_matrix=True)
    assert not_none(replace_update_weights(collected, np.array([3.0, 1.0])).mean).tolist() == [3.0, 1.0]
    assert not_none(replace_update_weights(collected, np.array([0.0, 2.0])).mean).tolist() == [0.0, 4.0]
    assert not_none(
        replace_update_weights(collected, np.array([0.0, 2.0]), are_weights_absolute=True).mean
    ).tolist() == [
        0.0,
        8.0,
    ]
    assert not_none(
        apply_weight_override(collected, AggregationOverride(weights=np.array([0.0, 2.0]), absolute=True)).mean
    ).tolist() == [
        0.0,
        8.0,
    ]


def test_a_group_is_added_at_once_without_its_excluded_client() -> None:
    """Updates 1, 2 and 5 with weights 1, 2 and 3, of which the second is too long: (1 * 1 + 3 * 5) / (1 + 3)."""
    deltas, norms = {0: 1.0, 1: 2.0, 2: 5.0}, {0: 1.0, 1: 1e9, 2: 5.0}
    calls: list[dict[int, float]] = []

    def total(weights: Mapping[int, float]) -> torch.Tensor:
        calls.append(dict(weights))
        return torch.tensor([sum(w * deltas[k] for k, w in weights.items())], dtype=torch.float64)

    group = UpdateGroup(len(deltas), total)
    collector = Collector(
        make_layout(1), np.arange(3), np.array([1.0, 2.0, 3.0]), CollectorOptions(max_update_norm=10.0)
    )
    for client in deltas:
        assert not calls
        collector.add_client_update(make_update(client, [float("nan")], norms=[norms[client]], group=group))
    collected = collector.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)
    assert calls == [{0: 1.0, 2: 3.0}]
    assert (not_none(collected.mean).tolist(), collected.clients.tolist()) == ([4.0], [0, 2])


def test_a_column_is_kept_per_signal() -> None:
    agg = make_component("agg", "fedavg")
    rows = [make_update(2, [1.0]), make_update(7, [2.0])]
    options = CollectorOptions(report_readers={"id": lambda u: float(u.client)})
    g = Collector(make_layout(1), np.array([2, 7]), np.ones(2), options)
    for row in reversed(rows):
        g.add_client_update(row)
    total = g.sum_over_ranks(lambda t: t, lambda t: t)
    assert total.reports["id"].tolist() == [2.0, 7.0]
    assert agg.needs == frozenset()


def test_the_buffers_of_each_client_are_kept_with_the_matrix() -> None:
    agg = make_component("agg", "feddf")
    rows = [make_update(k, [1.0], n=k + 1, buffers=torch.tensor([k, 2.0 * k])) for k in (0, 1, 3)]
    rows.append(make_update(2, [float("nan")], buffers=torch.zeros(2)))
    collected = collect_updates(agg, rows[::-1], make_layout(1, 2))
    assert collected.clients.tolist() == [0, 1, 3]
    assert not_none(collected.client_buffers).tolist() == [[0, 0], [1, 2], [3, 6]]
    assert not_none(collected.buffers).tolist() == [2, 4]  # by samples, (0 + 2 * 1 + 4 * 3) / 7
    assert collect_updates(make_component("agg", "fedavg"), rows, make_layout(1, 2)).client_buffers is None


def test_long_updates_are_added_in_chunks_and_kept_complete() -> None:
    """Sum and matrix of updates that are longer than a piece; a client that is left out has no row."""
    length = 2 * NUMBERS_PER_CHUNK + 3
    deltas = [torch.randn(length, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    deltas[1][-1] = float("inf")
    agg = make_component("agg", "fedavg")
    for stacked in (False, True):
        long_updates = [make_update(k, [], n=k + 1, vector=delta) for k, delta in enumerate(deltas)]
        collected = collect_updates(agg, long_updates, keep_matrix=stacked)
        assert collected.clients.tolist() == [0, 2]
        assert torch.equal(not_none(collected.mean), (deltas[0].double() + 3 * deltas[2].double()) / 4)
        if stacked:
            assert torch.equal(not_none(collected.updates), torch.stack([deltas[0], deltas[2]]).double())


def test_ranks_share_rows_of_different_lengths_and_averages() -> None:
    # Two ranks with a client each; raw weights 1 and 3: a mean is (1 * 4 + 3 * 8) / 4, a total 4 + 8.
    parts = []
    for client, x in ((3, [1.0, 2.0]), (5, [3.0, 4.0, 5.0])):
        options = CollectorOptions(upload_names=["a", "b"], averaged_uploads=("a",), vector_lengths={"x": 3})
        part = Collector(make_layout(1), np.array([3, 5]), np.array([1.0, 3.0]), options, 2)
        value = torch.tensor([4.0 if client == 3 else 8.0])
        part.add_client_update(
            make_update(client, [1.0], uploads={"a": value, "b": value}, stored={"x": torch.tensor(x)})
        )
        parts.append(part)
    other_rank = parts[1]
    other_tensors = iter(
        [
            torch.from_numpy(other_rank.arrival_table),
            other_rank.buffer_sum,
            other_rank.update_sum,
            other_rank.upload_sums["a"],
            other_rank.upload_sums["b"],
        ]
    )
    rows = torch.zeros((2, 3))
    rows[1] = other_rank.stored_by_client[5]["x"]
    total = parts[0].sum_over_ranks(lambda tensor: tensor + next(other_tensors, rows), lambda tensor: tensor)
    assert float(total.totals["a"]) == 7.0
    assert float(total.totals["b"]) == 12.0
    assert total.stored[3]["x"][:2].tolist() == [1, 2]
    assert total.stored[5]["x"].tolist() == [3, 4, 5]


def test_rows_that_other_ranks_fill_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of ranks are added up: what this rank doesn't train must not hold what memory held before."""

    def garbage(*size: int, **how: Any) -> torch.Tensor:
        return torch.full(size, 7.0, dtype=torch.float64)

    monkeypatch.setattr(torch, "empty", garbage)
    part = Collector(
        make_layout(1), np.array([0, 1]), np.ones(2), CollectorOptions(upload_names=["a"], keeps_updates=True), 2
    )
    part.add_client_update(make_update(1, [3.0], uploads={"a": torch.tensor([5.0])}))
    assert part.update_matrix is not None
    assert part.update_matrix.tolist() == [[0.0], [3.0]]
    assert part.client_uploads["a"].tolist() == [[0.0], [5.0]]


def test_without_positive_weights_there_is_no_mean() -> None:
    """Two clients with weight 0 arrive: no update is aggregated, and there is no division by zero."""
    part = Collector(make_layout(1), np.array([0, 1]), np.zeros(2), CollectorOptions())
    for client in (0, 1):
        part.add_client_update(make_update(client, [1.0]))
    total = part.sum_over_ranks(lambda tensor: tensor, lambda tensor: tensor)
    assert total.clients.tolist() == [0, 1]
    assert total.mean is total.buffers is total.counters is None
    assert total.weights.tolist() == [0.0, 0.0]


def test_new_weights_require_the_matrix_of_updates() -> None:
    complete = collect_updates(make_component("agg", "fedavg"), updates(2), keep_matrix=True)
    for incomplete in (replace(complete, updates=None), replace(complete, client_vectors=None)):
        with pytest.raises(ValueError, match="the matrix of updates was not kept"):
            replace_update_weights(incomplete, np.ones(2))


def test_variances_are_averaged_about_the_common_mean() -> None:
    """A collected variance is the second moment about the common mean.

    Client 0 has one sample, of mean 0 and variance 1; client 1 three, of mean 2 and variance 1. The mean is (0 + 3 * 2)
    / 4 = 1.5. The second moment is (1 + 3 (1 + 4)) / 4 = 4, and the variance 4 - 1.5^2 = 1.75. It is the same if client
    2 arrives and a selector excludes it.
    """
    layout = FlatModel(nn.BatchNorm1d(1)).layout
    offsets = {block.name: block.offset for block in layout.buffers}
    rows = []
    for client, (n, mean, variance) in enumerate([(1, 0.0, 1.0), (3, 2.0, 1.0), (5, 7.0, 9.0)]):
        buffers = torch.zeros(2, dtype=torch.float64)
        buffers[offsets["running_mean"]], buffers[offsets["running_var"]] = mean, variance
        counters = torch.ones(1, dtype=torch.int64)
        rows.append(make_update(client, [0.0, 0.0], n=n, buffers=buffers, counters=counters))
    agg = make_component("agg", "fedavg")
    of_two = collect_updates(agg, rows[:2], layout, moments=True)
    reweighted = replace_update_weights(
        collect_updates(agg, rows, layout, moments=True, keep_matrix=True), np.array([1.0, 3.0, 0.0])
    )
    for result in (of_two, reweighted):
        assert float(not_none(result.buffers)[offsets["running_mean"]]) == pytest.approx(1.5, abs=1e-12)
        assert float(not_none(result.buffers)[offsets["running_var"]]) == pytest.approx(1.75, abs=1e-12)


def test_an_update_of_no_parameters_is_added_on_any_device() -> None:
    """Away from a CPU an update is one piece, of one number at least. A meta tensor has a device and no numbers."""
    part = Collector(make_layout(0), np.array([0]), np.ones(1), CollectorOptions(), 1, torch.device("meta"))
    part.add_client_update(make_update(0, []))
    assert part.arrival_table[0].tolist() == [1.0, 1.0]
