"""Fed-CBS: imbalances and the distribution of cohorts by enumeration, on four clients and six classes."""

from collections import defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.maths.qcid import ROWS_PER_BLOCK, class_imbalances
from fedcohort.selector.fedcbs import FedCbs, State
from fedcohort.signal.base import Static, find_signal
from optional_values import not_none
from selector_harness import World, ids, make_context, make_outcome, play_rounds

H = np.array([[5] * 6, [6] * 5 + [0], [0] * 3 + [10] * 3, [10] * 3 + [0] * 3])
K = len(H)


def cbs(**changes: Any) -> FedCbs:
    return make_typed(FedCbs, "selector", "fedcbs", **changes)


def imbalance_of(*clients: int) -> float:
    return float(class_imbalances(H[list(clients)].sum(0, keepdims=True).astype(float))[0])


def test_imbalances_by_hand() -> None:
    """Client 1: five shares of 1/5: 5 (1/30)^2 + (1/6)^2 = 1/30. Clients 2 and 3: 6 (1/6)^2. Together they have all."""
    np.testing.assert_allclose(class_imbalances(H.astype(float)), [0, 0.033333, 0.166667, 0.166667], atol=5e-7)
    imbalances = [imbalance_of(*S) for S in combinations(range(4), 3)]
    np.testing.assert_allclose(imbalances, [0.014815, 0.02963, 0, 0.003704], atol=5e-7)
    assert imbalances[2] == 0


@pytest.mark.parametrize(
    ("chosen", "candidates", "imbalances"),
    [
        ([0], [1, 2, 3], [0.008333, 0.041667, 0.041667]),
        ([2], [0, 1, 3], [0.041667, 0.033333, 0.0]),
        ([3], [0, 1, 2], [0.041667, 0.066667, 0.0]),
    ],
)
def test_imbalances_after_adding_a_second_client(
    chosen: list[int], candidates: list[int], imbalances: list[float]
) -> None:
    """After client 0, the best single client, a greedy choice takes 1 and then 2: {0, 1, 2} instead of {0, 2, 3}."""
    np.testing.assert_allclose([imbalance_of(*chosen, k) for k in candidates], imbalances, atol=5e-7)
    assert imbalance_of(0, 1, 2) < imbalance_of(0, 1, 3)
    p = cbs().draw_probabilities(H.astype(float), ids(*chosen), ids(*candidates))[candidates]
    expected = np.maximum(imbalances, 1e-3) ** -2.0
    np.testing.assert_allclose(p, expected / expected.sum(), rtol=2e-4)


def distribution() -> tuple[np.ndarray, dict[tuple[int, ...], float]]:
    """Of the first client and of the set of three, for lambda = 0, draw by draw."""
    selector, sets = cbs(lam=0.0), defaultdict[tuple[int, ...], float](float)
    selection = selector.select(State(np.ones(K, np.int64)), make_context(0, 3, K, signals={"label_counts": H}), {})[0]
    first = selection.probability
    assert first is not None
    for i in range(K):
        p_j = selector.draw_probabilities(H.astype(float), ids(i), np.setdiff1d(np.arange(K), [i]))
        for j in np.flatnonzero(p_j):
            p_k = selector.draw_probabilities(H.astype(float), ids(i, int(j)), np.setdiff1d(np.arange(K), [i, j]))
            for k in np.flatnonzero(p_k):
                sets[tuple(sorted((i, int(j), int(k))))] += first[i] * p_j[j] * p_k[k]
    return first, dict(sets)


def test_the_distribution_of_cohorts_by_enumeration() -> None:
    """The perfectly balanced {0, 2, 3} is not the likely one with beta_j = j and eps = .001."""
    first, sets = distribution()
    np.testing.assert_allclose(first, [0.9597, 0.0288, 0.0058, 0.0058], atol=5e-5)
    assert {S: round(p, 4) for S, p in sets.items()} == {
        (0, 1, 2): 0.8136,
        (0, 1, 3): 0.1017,
        (0, 2, 3): 0.0824,
        (1, 2, 3): 0.0023,
    }


def test_selections_have_that_distribution() -> None:
    """4 sigma of 4000 cohorts."""
    selector, counts = cbs(lam=0.0), defaultdict[tuple[int, ...], int](int)
    for seed in range(4000):
        ctx = make_context(0, 3, K, signals={"label_counts": H}, seed=seed)
        counts[tuple(selector.select(State(np.ones(K, np.int64)), ctx, {})[0].clients.tolist())] += 1
    for S, p in distribution()[1].items():
        assert abs(counts[S] / 4000 - p) < 4 * np.sqrt(p * (1 - p) / 4000)


def test_the_first_score_by_hand() -> None:
    """1 / max(QCID, .001) + 10 sqrt(3 ln 5 / (2 T)): nothing to explore in round 0, and less of who was there often."""
    rounds = State(ids(1, 1, 1, 4))
    selection = cbs().select(rounds, make_context(4, 1, K, signals={"label_counts": H}), {})[0]
    explore = 10 * np.sqrt(3 * np.log(5) / 2) * np.array([1, 1, 1, 0.5])
    np.testing.assert_allclose(selection.score_terms["exploit"], [1000, 30, 6, 6], rtol=1e-12)
    np.testing.assert_allclose(selection.score_terms["explore"], explore, rtol=1e-12)
    np.testing.assert_allclose(not_none(selection.scores), np.array([1000, 30, 6, 6]) + explore, rtol=1e-12)
    assert (
        cbs().select(rounds, make_context(0, 1, K, signals={"label_counts": H}), {})[0].score_terms["explore"] == 0
    ).all()


def test_failed_clients_count_as_selected() -> None:
    state = cbs().observe(State(np.ones(4, np.int64)), make_outcome(0, [0, 2], failed=[1]))[1]
    assert state.selection_rounds.tolist() == [2, 2, 2, 1]


def test_a_long_cohort_does_not_overflow() -> None:
    """eps^-400 would."""
    counts = np.full((400, 3), 7)
    ctx = make_context(3, 399, 400, signals={"label_counts": counts})
    selection = cbs(eps=1e-12, beta=10.0).select(State(np.ones(400, np.int64)), ctx, {})[0]
    assert len(np.unique(selection.clients)) == 399


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_clients_without_samples_have_the_largest_imbalance() -> None:
    """As one-sided as can be: 1 - 1/6."""
    no_clients = np.zeros((3, 6), np.int64)
    np.testing.assert_allclose(class_imbalances(no_clients.astype(float)), 5 / 6)
    assert len(
        cbs()
        .select(State(np.ones(3, np.int64)), make_context(0, 2, 3, signals={"label_counts": no_clients}), {})[0]
        .clients
    )


def test_no_client_is_queried() -> None:
    world = World()
    assert all(not step.probes for step in play_rounds(cbs(), world, 3))
    assert world.read_signals == {"label_counts"}
    signal = find_signal("label_counts")
    assert isinstance(signal, Static)
    assert (signal.fact, signal.bytes_up) == ("label_counts", 4)


def test_an_imbalance_depends_only_on_its_row() -> None:
    """Rows are worked on in blocks; what is added to all of them is as if they had it."""
    rng = np.random.default_rng(5)
    counts, block_counts = rng.integers(0, 3, (ROWS_PER_BLOCK + 7, 6)).astype(float), np.array([1.0, 0, 0, 2, 0, 0])
    counts[-1] = counts[ROWS_PER_BLOCK] = 0
    for added in (np.zeros(6), block_counts):
        single = [
            class_imbalances((counts[i] + added)[None])[0]
            for i in (0, 1, ROWS_PER_BLOCK - 1, ROWS_PER_BLOCK, ROWS_PER_BLOCK + 6)
        ]
        assert (
            class_imbalances(counts, added)[[0, 1, ROWS_PER_BLOCK - 1, ROWS_PER_BLOCK, ROWS_PER_BLOCK + 6]].tolist()
            == single
        )
    assert counts[-1].sum() == 0  # the caller's counts stay as they were
