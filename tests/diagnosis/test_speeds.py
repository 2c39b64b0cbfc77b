"""The random effects model of durations by hand, and what leaving out slow clients saves."""

import numpy as np
import pytest

from fedcohort.diagnosis.speeds import (
    JobDurations,
    SpeedEstimate,
    choose_fast_clients,
    estimate_speeds,
    predict_slowest_seconds,
)


def make_durations(table: np.ndarray) -> JobDurations:
    """Return the sums of jobs whose log seconds are the rows of `table`, [jobs, K]."""
    n_clients = table.shape[1]
    durations = JobDurations(np.zeros(n_clients, np.int64), np.zeros(n_clients), np.zeros(n_clients))
    for row in table:
        durations = durations.with_jobs(np.arange(n_clients), np.exp(row))
    return durations


def test_the_share_that_persists_by_hand() -> None:
    """Three clients with two jobs each, log seconds 0 and 2, 3 and 5, 6 and 8: means 1, 4, 7.

    MSW = 2, MSB = 2 * 18 / 2 = 18, n_0 = 2, sigma^2 = 8 and rho = .8. A client's mean is shrunk by 2 / (2 + 2/8).
    """
    speeds = estimate_speeds(make_durations(np.array([[0.0, 3, 6], [2, 5, 8]])), np.ones(3))
    assert speeds.rho == pytest.approx(0.8)
    assert speeds.variance_within == pytest.approx(2.0)
    np.testing.assert_allclose(speeds.log_seconds, 4 + np.array([-3, 0, 3]) * 2 / 2.25)
    assert speeds.low < 0.8 < speeds.high


def test_seconds_are_divided_by_samples() -> None:
    """A client with twice the samples that takes twice as long is no slower."""
    jobs = np.log(np.array([[1.0, 2, 4], [1.1, 2.2, 4.4]]))
    speeds = estimate_speeds(make_durations(jobs), np.array([1.0, 2, 4]))
    assert speeds.rho == 0.0
    np.testing.assert_allclose(speeds.log_seconds, np.log(1.1) / 2)


@pytest.mark.parametrize("rows", [0, 1])
def test_one_job_per_client_gives_no_speed_estimate(rows: int) -> None:
    speeds = estimate_speeds(make_durations(np.zeros((rows, 4))), np.ones(4))
    assert np.isnan(speeds.rho)
    assert (speeds.low, speeds.high) == (0.0, 1.0)


def test_unusable_durations_are_left_out() -> None:
    durations = make_durations(np.zeros((1, 3))).with_jobs(np.array([0, 2]), np.array([np.nan, 0.0]))
    assert durations.job_counts.tolist() == [1, 1, 1]


def test_the_interval_holds_the_true_share() -> None:
    """200 federations of 30 clients with four jobs, rho = .5: 95 % of the intervals, within four standard errors."""
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(200):
        speeds = estimate_speeds(make_durations(rng.normal(size=30) + rng.normal(size=(4, 30))), np.ones(30))
        covered.append(speeds.low <= 0.5 <= speeds.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 200) ** 0.5)


def test_the_expected_slowest_job_of_a_cohort_by_simulation() -> None:
    """Without variance within clients, the slowest of two of {1, 3} is 1 with 1/4, and 3 otherwise."""
    assert predict_slowest_seconds(np.log(np.array([1.0, 3.0])), 0.0, 2) == pytest.approx(2.5)


@pytest.mark.parametrize(("cover", "n_fast"), [(0.0, 3), (0.5, 4), (0.9, 6)])
def test_slow_clients_that_hold_a_rare_class_are_kept(cover: float, n_fast: int) -> None:
    """Clients 3 to 5 take ten times as long, and hold all of class 1.

    With cover = .5 client 3 is enough: four of six clients need .5 * 4/6 * 30 = 10 of its 30 samples. With .9 five need
    22.5, and have 20.
    """
    counts = np.repeat(10.0 * np.eye(2), 3, axis=0)
    speeds = SpeedEstimate(0.9, 0.8, 1.0, np.repeat([0.0, np.log(10.0)], 3), 0.0)
    is_fast, gain = choose_fast_clients(speeds, counts, np.ones(6, dtype=bool), 2, cover, 1.25)
    assert is_fast.sum() == n_fast
    assert (gain > 1.25) == (cover < 0.9)


def test_no_client_is_dropped_for_a_small_speed_gain() -> None:
    speeds = SpeedEstimate(0.9, 0.8, 1.0, np.repeat([0.0, 0.1], 3), 0.0)
    is_fast, gain = choose_fast_clients(speeds, np.ones((6, 2)), np.ones(6, dtype=bool), 2, 0.5, 1.25)
    assert is_fast.all()
    assert gain == 1.0
