"""Shapley values by hand, by another formula, and by permutations."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from fedcohort.maths.shapley import player_marginals, shapley_values
from fedcohort.rng import new_generator
from fedcohort.types import Ids

VALUES = {"": 0.0, "a": 0.3, "b": 0.2, "c": 0.0, "ab": 0.4, "ac": 0.3, "bc": 0.35, "abc": 0.5}
A, B, C = 0, 1, 2


def by_name(members: "Ids | frozenset[int]") -> float:
    return VALUES["".join("abc"[i] for i in sorted(members))]


def estimate(
    value: Callable[[Ids], float], n: int, tolerance: float = 1e-4, exact: int = 4, per_player: int = 50
) -> list[float]:
    return [float(v) for v in shapley_values(value, n, tolerance, exact, per_player, new_generator(0, "shapley"))]


def test_the_shapley_values_of_three_players_by_hand() -> None:
    """Means over the six orders: a adds .3 .3 .2 .3 .15 .15, b .1 .2 .2 .2 .2 .35, and c .1 .0 .1 .0 .15 .0."""
    np.testing.assert_allclose(estimate(by_name, 3), [1.4 / 6, 1.25 / 6, 0.35 / 6])


@pytest.mark.parametrize(
    ("order", "tolerance", "marginals"),
    [
        ([A, B, C], 0.12, [0.3, 0.1, 0.0]),
        ([A, B, C], 1e-4, [0.3, 0.1, 0.1]),
        ([C, B, A], 1e-4, [0.15, 0.35, 0.0]),
    ],
)
def test_a_permutation_is_truncated_when_it_reaches_the_value_of_all(
    order: list[int], tolerance: float, marginals: list[float]
) -> None:
    np.testing.assert_allclose(player_marginals(by_name, order, tolerance), marginals, atol=1e-12)


def test_a_cohort_that_changes_nothing_has_no_values() -> None:
    assert estimate(by_name, 3, tolerance=0.51) == [0, 0, 0]
    assert estimate(by_name, 0) == []


def test_permutations_estimate_the_exact_values() -> None:
    """A random game of six: the mean over all permutations; 6 x 2,000 permutations come near it, 50 less so."""
    draws = np.random.default_rng(1)
    random_values = {frozenset(s): draws.random() for k in range(7) for s in itertools.combinations(range(6), k)}
    calls: list[frozenset[int]] = []

    def value(members: Ids) -> float:
        calls.append(frozenset(members.tolist()))
        return random_values[calls[-1]]

    exact = estimate(value, 6, exact=6)
    assert len(calls) == len(set(calls)) == 2**6
    expected = [
        sum(
            math.factorial(len(s)) * math.factorial(5 - len(s)) / 720 * (random_values[s | {i}] - random_values[s])
            for s in random_values
            if i not in s
        )
        for i in range(6)
    ]
    np.testing.assert_allclose(exact, expected, atol=1e-12)
    calls.clear()
    estimated = estimate(value, 6, tolerance=0.0)
    assert len(calls) == len(set(calls)) <= 2**6
    assert 0 < np.abs(np.subtract(estimated, exact)).max() < 0.15
    assert sum(estimated) == pytest.approx(random_values[frozenset(range(6))] - random_values[frozenset()])


def test_an_additive_game_converges_after_one_block() -> None:
    """Each of the n first permutations gives the contributions themselves, and the next one ends the estimate."""
    n_walks = 0

    def value(members: Ids) -> float:
        nonlocal n_walks
        n_walks += len(members) == 1
        return float((members + 1).sum())

    assert estimate(value, 7, exact=4) == pytest.approx([1, 2, 3, 4, 5, 6, 7])
    assert n_walks == 7


def test_non_finite_coalition_values_add_to_no_player() -> None:
    """Coalitions with player 2 have no finite value: it gets 0, and players 0 and 1 get half of 1 and 2."""

    def value(members: Ids) -> float:
        return -math.inf if 2 in members else float((members + 1).sum())

    assert estimate(value, 3) == pytest.approx([0.5 * 1, 0.5 * 2, 0])
