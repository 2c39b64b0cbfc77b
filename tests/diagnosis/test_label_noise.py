"""Groups of clients by hand, the pool and its classes."""

import numpy as np
import pytest

from excess_loss_example import LOSSES
from fedcohort.diagnosis.excess_loss import ClassLosses, ExcessLoss
from fedcohort.diagnosis.label_noise import (
    NoiseEstimate,
    NoiseMonitor,
    choose_pool,
    covers_all_classes,
    estimate_noise,
    split_into_two_groups,
)


def estimate(excess: list[float], is_noisier: list[int]) -> NoiseEstimate:
    values = np.array(excess)
    fit = ExcessLoss(np.zeros(2), values, np.zeros(len(values)), 1.0, 1.0)
    return NoiseEstimate(fit, np.array(is_noisier, dtype=bool), 0.5)


@pytest.mark.parametrize(
    ("values", "expected", "difference"),
    [
        ([0.0, 0.1, 1.0, 1.1], [0, 0, 1, 1], 1.0),
        ([3.0, 0.0, 0.0], [1, 0, 0], 3.0),
        ([0.5, 0.5], [0, 0], 0.0),
        ([0.5], [0], 0.0),
    ],
)
def test_groups_have_the_largest_variance_between_them(
    values: list[float], expected: list[int], difference: float
) -> None:
    is_upper, gap = split_into_two_groups(np.array(values))
    assert is_upper.tolist() == [bool(x) for x in expected]
    assert gap == pytest.approx(difference)


def test_the_worked_example_has_a_gap_of_two_thirds() -> None:
    """Clients 3 and 5 of `test_excess_loss.py`: 1.838 nats of 2.774 in the fit by classes, and .6623 by sums."""
    noise = estimate_noise(LOSSES)
    assert np.flatnonzero(noise.is_noisier).tolist() == [3, 5]
    assert noise.gap == pytest.approx(0.6623, abs=1e-3)
    assert noise.is_valid


def test_an_uninformative_model_gives_no_valid_gap() -> None:
    """The other labels cost no more than the right ones: D is at most 0."""
    noise = estimate_noise(ClassLosses(LOSSES.class_counts, LOSSES.loss_sums, LOSSES.squared_loss_sums, np.zeros(6)))
    assert np.isnan(noise.gap)
    assert not noise.is_valid


def test_a_pool_that_is_too_small_takes_the_clients_with_the_least_excess() -> None:
    counts = np.ones((5, 2))
    pool = choose_pool(estimate([0.0, 1.0, 1.2, 1.1, 1.3], [0, 1, 1, 1, 1]), counts, 0.6, 0.0)
    assert np.flatnonzero(pool).tolist() == [0, 1, 3]


def test_holders_of_a_missing_class_join_the_pool_until_it_is_covered() -> None:
    """Clients 2 to 4 are above the cut and hold class 1; their mean excess is 1, so that 4 may not join.

    The pool {0, 1} has 20 of 50 samples, and needs .5 * 30 * 20/50 = 6 of class 1; with client 3 it has 10.
    """
    counts = np.array([[10.0, 0], [10, 0], [0, 10], [0, 10], [0, 10]])
    pool = choose_pool(estimate([0.0, 0.0, 0.9, 0.8, 1.3], [0, 0, 1, 1, 1]), counts, 0.2, 0.5)
    assert np.flatnonzero(pool).tolist() == [0, 1, 3]
    assert covers_all_classes(pool, counts, 0.5)
    assert not covers_all_classes(np.array([1, 1, 0, 0, 0], dtype=bool), counts, 0.5)
    uncovered_pool = choose_pool(estimate([0.0, 0.0, 0.9, 0.8, 1.3], [0, 0, 1, 1, 1]), counts, 0.2, 0.0)
    assert np.flatnonzero(uncovered_pool).tolist() == [0, 1]


def test_released_clients_are_not_excluded_again() -> None:
    watch = NoiseMonitor()
    for gap in (0.3, 0.6, 0.45, 0.5, 0.5):
        watch = watch.with_probe(gap, 0.2, 0.8)
    assert watch.is_released
    assert watch.is_done
    assert not watch.is_acting
    assert not watch.is_suspected
