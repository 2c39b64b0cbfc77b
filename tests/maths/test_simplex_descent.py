"""Momentum by the book, where it is dropped, and when it is over."""

import numpy as np

from fedcohort.maths.simplex import minimise_by_descent

ILL = np.geomspace(1e-3, 1, 12)  # steps without momentum need thousands
EQUAL = np.full(12, 1 / 12)


def step(ahead: np.ndarray) -> np.ndarray:
    """Down 1/2 sum ILL_i w_i^2 with sum w = 1: a projection takes the excess off evenly."""
    moved = ahead - ILL * ahead
    return np.asarray(moved - (moved.sum() - 1) / 12)


def excess(w: np.ndarray) -> float:
    """How far sum ILL_i w_i^2 is above its minimum, as a share of it."""
    return float((ILL * w**2).sum() * (1 / ILL).sum() - 1)


def test_momentum_by_hand() -> None:
    t = [1.0, 1.618033988749895, 2.193527085331054, 2.749791340120445]
    before = ahead = EQUAL
    for k in range(4):
        new = step(ahead)
        ahead = new + (t[k] - 1) / t[min(k + 1, 3)] * (new - before)
        before = new
    np.testing.assert_allclose(minimise_by_descent(step, EQUAL, max_steps=4), before, rtol=1e-12)


def test_momentum_is_reset_where_it_leads_uphill() -> None:
    """100 times nearer after 200 steps than with it throughout, and 100,000 times than without."""
    assert excess(minimise_by_descent(step, EQUAL, max_steps=200)) < 1e-5


def test_descent_stops_when_a_step_is_within_the_tolerance() -> None:
    """But only a step without momentum tells: turning points of one with it stand still, too."""
    minimum = minimise_by_descent(step, EQUAL)
    assert np.abs(step(minimum) - minimum).max() <= 1e-12
    np.testing.assert_allclose(minimum, 1 / ILL / (1 / ILL).sum(), rtol=1e-6)
    calls: list[np.ndarray] = []

    def quarter(ahead: np.ndarray) -> np.ndarray:
        calls.append(ahead)
        return np.asarray(ahead + 0.25)

    np.testing.assert_array_equal(minimise_by_descent(quarter, np.zeros(2), tolerance=0.25), [0.25, 0.25])
    assert len(calls) == 1
    assert minimise_by_descent(quarter, np.zeros(2), max_steps=1, tolerance=0.24).tolist() == [0.25, 0.25]
