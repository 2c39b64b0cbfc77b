"""Sums do not depend on who comes first, and a rank's part is a part."""

import itertools
from dataclasses import replace

import numpy as np
import torch

from agg_harness import gather, layout_of, update_of
from fedcohort.round.aggregate import advised
from fedcohort.round.collect import PIECE, Gatherer
from fedcohort.round.collected import reweighted
from fedcohort.types import Advice
from yaml_words import make


def updates(n: int = 5, p: int = 40) -> list:
    g = torch.Generator().manual_seed(0)
    return [
        update_of(
            k, torch.randn(p, generator=g, dtype=torch.float64).tolist(), n=k + 1, buffers=torch.randn(2, generator=g)
        )
        for k in range(n)
    ]


def test_two_ranks_sum_to_one_process() -> None:
    # dealing the same clients over two gatherers and adding their tensors is what the all-reduce does
    rows, agg, layout = updates(), make("agg", "fedavg"), layout_of(40, 2)
    whole = gather(agg, rows, layout)
    halves = []
    for part in (rows[:2], rows[2:]):
        cohort = np.arange(5)
        weights = np.arange(1.0, 6.0)
        g = Gatherer(layout, cohort, weights, [], [], {}, False, False, torch.device("cpu"), 2)
        for update in part:
            g.add(update)
        halves.append(g)
    other = halves[1]
    tensors = iter([torch.from_numpy(other.table), other.buffers, other.sum])
    joined = halves[0].finish(lambda t: t + next(tensors), lambda t: t)
    torch.testing.assert_close(joined.mean, whole.mean, atol=1e-12, rtol=0)
    torch.testing.assert_close(joined.buffers, whole.buffers, atol=1e-6, rtol=0)
    assert joined.clients.tolist() == whole.clients.tolist()


def test_order_of_arrival_changes_at_most_the_last_bits() -> None:
    # The engine adds in a fixed order, so that runs repeat bit for bit; the sum itself is order-free to rounding.
    rows, agg = updates(4), make("agg", "fedavg")
    reference = gather(agg, rows, layout_of(40, 2))
    for order in itertools.permutations(range(4)):
        got = gather(agg, [rows[i] for i in order], layout_of(40, 2))
        torch.testing.assert_close(got.mean, reference.mean, atol=1e-14, rtol=0)
        assert got.clients.tolist() == reference.clients.tolist()


def test_advice_reweighs() -> None:
    agg = make("agg", "fedavg")
    object.__setattr__(agg, "stacked", True)
    gathered = gather(agg, [update_of(0, [4.0, 0.0]), update_of(1, [0.0, 4.0])])
    assert reweighted(gathered, np.array([3.0, 1.0])).mean.tolist() == [3.0, 1.0]
    assert reweighted(gathered, np.array([0.0, 2.0])).mean.tolist() == [0.0, 4.0]
    assert reweighted(gathered, np.array([0.0, 2.0]), absolute=True).mean.tolist() == [0.0, 8.0]
    assert advised(gathered, Advice(weights=np.array([0.0, 2.0]), absolute=True)).mean.tolist() == [0.0, 8.0]


def test_a_column_is_kept_per_word() -> None:
    agg = make("agg", "fedavg")
    rows = [update_of(2, [1.0]), update_of(7, [2.0])]
    g = Gatherer(
        layout_of(1),
        np.array([2, 7]),
        np.ones(2),
        [],
        [],
        {"id": lambda u: float(u.client)},
        False,
        False,
        torch.device("cpu"),
        1,
    )
    for row in reversed(rows):
        g.add(row)
    done = g.finish(lambda t: t, lambda t: t)
    assert done.reports["id"].tolist() == [2.0, 7.0]
    assert agg.needs == frozenset()


def test_the_buffers_of_each_are_kept_beside_the_matrix() -> None:
    agg = make("agg", "feddf")
    rows = [update_of(k, [1.0], n=k + 1, buffers=torch.tensor([k, 2.0 * k])) for k in (0, 1, 3)]
    rows.append(update_of(2, [float("nan")], buffers=torch.zeros(2)))
    gathered = gather(agg, rows[::-1], layout_of(1, 2))
    assert gathered.clients.tolist() == [0, 1, 3]
    assert gathered.each_buffers.tolist() == [[0, 0], [1, 2], [3, 6]]
    assert gathered.buffers.tolist() == [2, 4]  # by samples, (0 + 2 * 1 + 4 * 3) / 7
    assert gather(make("agg", "fedavg"), rows, layout_of(1, 2)).each_buffers is None


def test_long_updates_are_added_in_pieces_and_kept_whole() -> None:
    """Sum and matrix of updates that are longer than a piece; a client that is left out has no row."""
    length = 2 * PIECE + 3
    rows = [update_of(k, [0.0], n=k + 1) for k in range(3)]
    deltas = [torch.randn(length, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    deltas[1][-1] = float("inf")
    agg = make("agg", "fedavg")
    for stacked in (False, True):
        object.__setattr__(agg, "stacked", stacked)
        got = gather(agg, [replace(row, delta=delta) for row, delta in zip(rows, deltas, strict=True)])
        assert got.clients.tolist() == [0, 2]
        assert torch.equal(got.mean, (deltas[0].double() + 3 * deltas[2].double()) / 4)
        if stacked:
            assert torch.equal(got.updates, torch.stack([deltas[0], deltas[2]]).double())


def test_ranks_share_rows_of_different_lengths_and_averages() -> None:
    # Two ranks with a client each; raw weights 1 and 3: a mean is (1 * 4 + 3 * 8) / 4, a total 4 + 8.
    parts = []
    for client, x in ((3, [1.0, 2.0]), (5, [3.0, 4.0, 5.0])):
        part = Gatherer(
            layout_of(1), np.array([3, 5]), np.array([1.0, 3.0]), ["a", "b"], {"x": 3}, {}, False, False,
            torch.device("cpu"), 2, averaged=("a",),
        )  # fmt: skip
        value = torch.tensor([4.0 if client == 3 else 8.0])
        part.add(update_of(client, [1.0], uploads={"a": value, "b": value}, stored={"x": torch.tensor(x)}))
        parts.append(part)
    other = parts[1]
    theirs = iter([torch.from_numpy(other.table), other.buffers, other.sum, other.totals["a"], other.totals["b"]])
    rows = torch.zeros((2, 3))
    rows[1] = other.stored[5]["x"]
    done = parts[0].finish(lambda tensor: tensor + next(theirs, rows), lambda tensor: tensor)
    assert float(done.totals["a"]) == 7.0
    assert float(done.totals["b"]) == 12.0
    assert done.stored[3]["x"][:2].tolist() == [1, 2]
    assert done.stored[5]["x"].tolist() == [3, 4, 5]
