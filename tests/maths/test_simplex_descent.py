"""Momentum by the book, where it is dropped, and when it is over."""

import numpy as np

from fedcohort.maths.simplex import minimise_by_descent

CURVATURES = np.geomspace(1e-3, 1, 12)  # steps without momentum need thousands
EQUAL = np.full(12, 1 / 12)


def step(point: np.ndarray) -> np.ndarray:
    """Down 1/2 sum ILL_i w_i^2 with sum w = 1: a projection takes the excess off evenly."""
    next_point = point - CURVATURES * point
    return np.asarray(next_point - (next_point.sum() - 1) / 12)


def excess(w: np.ndarray) -> float:
    """How far sum ILL_i w_i^2 is above its minimum, as a share of it."""
    return float((CURVATURES * w**2).sum() * (1 / CURVATURES).sum() - 1)


def test_the_momentum_of_accelerated_descent_by_hand() -> None:
    t = [1.0, 1.618033988749895, 2.193527085331054, 2.749791340120445]
    previous = extrapolated = EQUAL
    for k in range(4):
        current = step(extrapolated)
        extrapolated = current + (t[k] - 1) / t[min(k + 1, 3)] * (current - previous)
        previous = current
    np.testing.assert_allclose(minimise_by_descent(step, EQUAL, max_steps=4), previous, rtol=1e-12)


def test_momentum_is_reset_where_it_leads_uphill() -> None:
    """100 times nearer after 200 steps than with it throughout, and 100,000 times than without."""
    assert excess(minimise_by_descent(step, EQUAL, max_steps=200)) < 1e-5


def test_descent_stops_when_a_step_is_within_the_tolerance() -> None:
    """But only a step without momentum tells: turning points of one with it stand still, too."""
    minimum = minimise_by_descent(step, EQUAL)
    assert np.abs(step(minimum) - minimum).max() <= 1e-12
    np.testing.assert_allclose(minimum, 1 / CURVATURES / (1 / CURVATURES).sum(), rtol=1e-6)
    calls: list[np.ndarray] = []

    def quarter(point: np.ndarray) -> np.ndarray:
        calls.append(point)
        return np.asarray(point + 0.25)

    np.testing.assert_array_equal(minimise_by_descent(quarter, np.zeros(2), tolerance=0.25), [0.25, 0.25])
    assert len(calls) == 1
    assert minimise_by_descent(quarter, np.zeros(2), max_steps=1, tolerance=0.24).tolist() == [0.25, 0.25]
