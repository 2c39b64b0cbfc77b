"""Allocations by hand."""

import numpy as np
import pytest

from fedcohort.maths.strata import (
    deviations_of_strata,
    equal_stratum_allocation,
    neyman_allocation,
    round_draws_to_capacity,
)

N = np.array([6, 3, 1])


@pytest.mark.parametrize(
    ("S", "m", "target", "draws"),
    [
        ([0.5, 2.0, 0.0], 4, [4 / 3, 8 / 3, 0], [1, 2, 1]),  # N S = (3, 6, 0): of the fourth, 2 lacks most
        ([0.5, 2.0, 0.0], 6, [2, 4, 0], [2, 3, 1]),  # there are only three
        ([0.0, 0.0, 0.0], 5, [3, 1.5, 0.5], [3, 1, 1]),  # nothing varies: by size
        ([0.5, 2.0, 0.0], 2, [2 / 3, 4 / 3, 0], [1, 1, 0]),  # fewer draws than strata: the largest targets
        ([0.5, 2.0, 0.0], 12, [4, 8, 0], [6, 3, 1]),  # all samples are drawn
        ([0.5, 2.0, 0.0], 0, [0, 0, 0], [0, 0, 0]),
    ],
)
def test_neyman_allocation_by_hand(S: list[float], m: int, target: list[float], draws: list[int]) -> None:
    targets = neyman_allocation(N, np.array(S), m)
    np.testing.assert_allclose(targets, target, rtol=1e-12)
    assert round_draws_to_capacity(targets, N, m).tolist() == draws


@pytest.mark.parametrize(
    ("m", "capacity", "draws"),
    [
        (3, [6, 3, 1], [1, 1, 1]),
        (4, [6, 3, 1], [2, 1, 1]),  # the remainder to the largest
        (6, [6, 3, 1], [3, 2, 1]),  # 2 each, and what the third has no room for to the largest
        (8, [6, 3, 1], [4, 3, 1]),  # (3, 3, 2) overflows by 1
        (8, [2, 3, 1], [2, 3, 1]),
        (1, [0, 3, 1], [0, 1, 0]),
    ],
)
def test_equal_allocation_by_hand(m: int, capacity: list[int], draws: list[int]) -> None:
    assert equal_stratum_allocation(N, np.array(capacity), m).tolist() == draws


def test_allocations_of_random_inputs_add_up() -> None:
    rng = np.random.default_rng(0)
    for _ in range(1000):
        H = int(rng.integers(1, 9))
        sizes, S = rng.integers(1, 12, H), rng.exponential(size=H) * rng.integers(0, 2, H)
        capacity, m = rng.integers(0, sizes + 1), int(rng.integers(0, 40))
        for draws in (
            round_draws_to_capacity(neyman_allocation(sizes, S, m), capacity, m),
            equal_stratum_allocation(sizes, capacity, m),
        ):
            assert draws.sum() == min(m, capacity.sum())
            assert (draws <= capacity).all()
            assert (draws >= 0).all()


def test_the_spread_of_a_stratum_is_a_standard_deviation() -> None:
    """The spread of (3, 4), (6, 8), (0, 5) is sqrt(40 / 3).

    The mean is (3, 17/3), the squares are 25/9 + (9 + 49/9) + (9 + 4/9) = 80/3, over 2. The mean distance of pairs,
    which others use, is 3.30455147.
    """
    X = np.array([[3.0, 4], [6, 8], [0, 5], [7, 7]])
    np.testing.assert_allclose(deviations_of_strata(X, np.array([0, 0, 0, 1]), 3), [3.65148372, 0, 0], atol=5e-9)
    pairs = np.linalg.norm(X[:3, None] - X[:3], axis=2)
    assert pairs.mean() == pytest.approx(3.30455147, abs=5e-9)
