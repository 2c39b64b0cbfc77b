"""Clustered sampling: the distributions of both algorithms by hand, their sums, and weights that are unbiased."""

from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.errors import OptionError
from fedcohort.maths.urns import Urns, cut_ward_tree, ward_tree
from fedcohort.selector.clustered import (
    Clustered,
    State,
    store_client_updates,
    urns_by_similarity,
    urns_by_size,
)
from fedcohort.types import Population, RoundContext, Selection
from optional_values import not_none
from round_harness import run_without_files
from selector_harness import World, ids, make_context, make_outcome, play_rounds

NAN = float("nan")
DEGREES = np.deg2rad([0, 6, 10, 90, 95, 180])
UNIT = np.stack([np.cos(DEGREES), np.sin(DEGREES)], axis=1)


def clustered(**changes: Any) -> Clustered:
    return make_typed(Clustered, "selector", "clustered", **{"tie": "id", **changes})


def matrix(rows: Urns, n: np.ndarray, m: int) -> np.ndarray:
    """Return W, [m, K]."""
    W = np.zeros((m, len(n)))
    np.add.at(W, (rows[1], rows[0]), rows[2] / n.sum())
    return W


def compute_angles(updates: np.ndarray) -> np.ndarray:
    K = len(updates)
    start = State(np.zeros(K, np.int64), np.zeros((K, 0), np.float32), np.zeros((K, K)))
    return store_client_updates(start, np.arange(K), updates).angles


def draw_by_similarity(n: np.ndarray, m: int, updates: np.ndarray = UNIT, tree: str = "rows") -> np.ndarray:
    return matrix(urns_by_similarity(n, m, ward_tree(compute_angles(updates), tree)), n, m)


@pytest.mark.parametrize(
    ("sizes", "m", "W", "inclusion"),
    [
        ([4, 3, 2, 1], 2, [[0.8, 0.2, 0, 0], [0, 0.4, 0.4, 0.2]], [0.8, 0.52, 0.4, 0.2]),  # 1 - .8 .6 = .52
        ([5, 3, 2], 2, [[1, 0, 0], [0, 0.6, 0.4]], [1, 0.6, 0.4]),
        ([7, 2, 1], 3, [[1, 0, 0], [1, 0, 0], [0.1, 0.6, 0.3]], [1, 0.6, 0.3]),
        ([1, 2, 3, 4], 2, [[0, 0, 0.2, 0.8], [0.2, 0.4, 0.4, 0]], [0.2, 0.4, 0.52, 0.8]),
    ],
)
def test_sampling_distributions_by_size_by_hand(
    sizes: list[int], m: int, W: list[list[float]], inclusion: list[float]
) -> None:
    """Masses m n_k / n: 2 (4, 3, 2, 1) / 10 = .8, .6, .4, .2, of which the second one fills .2 of the first row."""
    n = np.array(sizes)
    np.testing.assert_allclose(matrix(urns_by_size(n, m), n, m), W, atol=1e-15)
    ctx = make_context(cohort=m, n_clients=len(n), signals={"n_train": n})
    selection = clustered().select(clustered().init(Population(len(n), 2, m, {})), ctx, {})[0]
    if m < len(n):
        np.testing.assert_allclose(not_none(selection.probability), inclusion, atol=1e-15)


@pytest.mark.parametrize(
    ("sizes", "m", "W"),
    [
        ([1] * 6, 3, [[0.5, 0, 0, 0, 0, 0.5], [0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5, 0]]),
        ([1] * 6, 2, [[1 / 3, 1 / 3, 1 / 3, 0, 0, 0], [0, 0, 0, 1 / 3, 1 / 3, 1 / 3]]),
        ([3, 2, 2, 1, 1, 1], 2, [[0.4, 0, 0, 0.2, 0.2, 0.2], [0.2, 0.4, 0.4, 0, 0, 0]]),
        ([5, 1, 1, 1, 1, 1], 2, [[1, 0, 0, 0, 0, 0], [0, 0.2, 0.2, 0.2, 0.2, 0.2]]),
    ],
)
def test_sampling_distributions_by_similarity_by_hand(sizes: list[int], m: int, W: list[list[float]]) -> None:
    """Updates at 0, 6, 10, 90, 95 and 180 degrees: rows 1 and 2 of the angles differ by 4, and rows 3 and 4 by 5.

    With six equal clients and m = 3 a row takes two: {1, 2} and {3, 4} are together, {0} and {5} share the third row.
    """
    rows = draw_by_similarity(np.array(sizes), m)
    np.testing.assert_allclose(rows, np.array(W), atol=1e-15)


def test_the_clusters_are_the_largest_subtrees_within_a_row() -> None:
    tree = ward_tree(compute_angles(UNIT), "rows")
    for m, clusters in ((3, [[0], [1, 2], [3, 4], [5]]), (2, [[0, 1, 2], [3, 4, 5]]), (1, [[0, 1, 2, 3, 4, 5]])):
        cluster = cut_ward_tree(np.full(6, m), tree, 6)
        assert sorted(np.flatnonzero(cluster == label).tolist() for label in np.unique(cluster)) == clusters


@pytest.mark.parametrize("tree", ["rows", "condensed"])
def test_rows_sum_to_one_and_columns_to_the_masses(tree: str) -> None:
    """In integers, of a hundred random federations; clients without samples are in no row."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        K = int(rng.integers(3, 14))
        n, m = rng.integers(0, 30, K) + (np.arange(K) == 0), int(rng.integers(1, K))
        angles = compute_angles(rng.standard_normal((K, 3)))
        for position, urn, mass in (urns_by_size(n, m), urns_by_similarity(n, m, ward_tree(angles, tree))):
            assert (mass > 0).all()
            assert (np.diff(urn) >= 0).all()
            assert np.bincount(urn, weights=mass, minlength=m).tolist() == [n.sum()] * m
            assert np.bincount(position, weights=mass, minlength=K).tolist() == (m * n).tolist()


def test_equal_sizes_have_equal_inclusion_probabilities() -> None:
    """m / K where m divides K; every row is then of other clients, so that no client is drawn twice."""
    for step in play_rounds(
        clustered(tie="random"), World(change_static=lambda signal, values: np.full(len(values), 50)), 20
    ):
        np.testing.assert_allclose(not_none(step.selection.probability), 3 / 12, rtol=1e-12)
        assert len(step.selection.clients) == 3


@pytest.mark.parametrize("criterion", ["size", "similarity"])
def test_weights_are_unbiased(criterion: str) -> None:
    """The mean of draws / m is n_k / n within four sigma, and no variance exceeds that of draws in proportion to n."""
    n, selector = np.array([4, 3, 2, 1, 1, 1]), clustered(criterion=criterion, tie="random")
    state = State(np.zeros(6, np.int64), UNIT.astype(np.float32), compute_angles(UNIT))
    draws = np.stack(
        [
            selector.select(state, make_context(n_clients=6, signals={"n_train": n}, seed=seed), {})[1].draws
            for seed in range(2000 if criterion == "size" else 300)
        ]
    )
    p = n / n.sum()
    assert (np.abs(draws.mean(0) / 2 - p) < 4 * np.sqrt(p * (1 - p) / 2 / len(draws))).all()
    assert (draws.var(0) < 1.1 * 2 * p * (1 - p)).all()


def test_equal_clients_are_in_changing_rows() -> None:
    def probability(seed: int, tie: str) -> tuple[float, ...]:
        ctx = make_context(cohort=2, n_clients=3, signals={"n_train": np.array([1, 1, 1])}, seed=seed)
        selection: Selection = clustered(tie=tie).select(clustered().init(Population(3, 2, 2, {})), ctx, {})[0]
        return tuple(not_none(selection.probability).round(9).tolist())

    assert {probability(seed, "id") for seed in range(9)} == {(0.666666667, 0.555555556, 0.666666667)}
    assert len({probability(seed, "random") for seed in range(30)}) == 3


def test_draws_are_the_weights_of_arrivals() -> None:
    state = State(np.array([2, 0, 1, 0]), np.zeros((4, 0), np.float32), np.zeros((0, 0)))
    advice, after = clustered().observe(state, make_outcome(0, [0, 2]))
    assert not_none(not_none(advice).weights).tolist() == [2, 1]
    assert not not_none(advice).absolute
    assert after is state
    no_clients = clustered().observe(
        State(np.zeros(4, np.int64), state.updates, state.angles), make_outcome(0, [0, 2])
    )[0]
    assert no_clients is None


def test_all_available_clients_train_where_they_are_at_most_m() -> None:
    state = clustered().init(Population(4, 2, 3, {}))
    ctx = make_context(cohort=3, n_clients=4, available=[0, 2, 3], signals={"n_train": np.array([9, 9, 1, 1])})
    selection, after = clustered().select(state, ctx, {})
    assert selection.clients.tolist() == [0, 2, 3]
    assert not_none(selection.probability).tolist() == [1, 0, 1, 1]
    assert not after.draws.any()


def test_clients_without_samples_are_drawn_only_where_no_client_has_any() -> None:
    def cohort(n: list[int]) -> RoundContext:
        return make_context(cohort=2, n_clients=3, signals={"n_train": np.array(n)})

    state = clustered().init(Population(3, 2, 2, {}))
    assert not_none(clustered().select(state, cohort([0, 5, 0]), {})[0].probability).tolist() == [0, 1, 0]
    assert not_none(clustered().select(state, cohort([0, 0, 0]), {})[0].probability).min() > 0.5


def test_angles_are_those_of_the_latest_updates() -> None:
    """Client 2 is new: its update is zero, and its angles are too. A row that is not finite changes nothing."""
    start = clustered(criterion="similarity").init(Population(3, 2, 2, {}))
    first = store_client_updates(start, ids(0, 1), np.array([[1.0, 0.0], [0.0, 2.0]]))
    right_angles = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(first.angles, np.pi / 2 * right_angles, atol=1e-12)
    second = store_client_updates(first, ids(0, 1), np.array([[NAN, 1.0], [3.0, 3.0]]))
    np.testing.assert_allclose(second.angles[0], np.pi / 4 * right_angles[0], atol=1e-7)
    assert second.updates.tolist() == [[1, 0], [3, 3], [0, 0]]
    rows = np.random.default_rng(0).standard_normal((3, 100))  # without care one of them has 1.5e-8 radians
    assert np.diag(store_client_updates(start, ids(0, 1, 2), rows).angles).tolist() == [0, 0, 0], "to itself, exactly"
    assert first.updates.tolist() == [[1, 0], [0, 2], [0, 0]]


def test_large_populations_are_rejected() -> None:
    with pytest.raises(OptionError, match="limit must be an integer of at least 13, the number of clients, whose"):
        clustered(criterion="similarity", limit=12).init(Population(13, 4, 3, {}))
    assert clustered(limit=12).init(Population(13, 4, 3, {})).angles.size == 0
    assert clustered(criterion="similarity").memory_bytes(10, 100) == 16 * 10 * 100 + 16 * 100
    assert clustered().memory_bytes(10, 100) == 0


@pytest.mark.parametrize("criterion", ["size", "similarity"])
def test_a_run_weighs_clients_by_their_draws(criterion: str) -> None:
    """Weights are multiples of 1 / m that sum to 1, in cohorts of any size up to m."""
    run = run_without_files(
        "selector=clustered", f"selector.criterion={criterion}", "partition=quantity", "cohort=6", "rounds=4"
    )
    for report in run.reports[1:]:
        draws = np.asarray(6 * report.clients["weight"][report.arrived], dtype=np.float64)
        np.testing.assert_allclose(draws, draws.round(), atol=1e-9)
        assert draws.sum() == pytest.approx(6)
        assert 1 <= len(report.cohort) <= 6
