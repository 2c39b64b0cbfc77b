"""Arrivals of the same second beyond the limit wait for the next round; inf never arrives."""

import numpy as np

from fedcohort.deadline.base import compute_outcome
from fedcohort.device.base import Timing
from fedcohort.round.closing_time import RoundEnd, limit_arrival_count, mark_awaited_jobs, mark_usable_jobs
from fedcohort.round.in_flight import find_job_seconds_left
from job_tables import make_jobs


def test_the_lowest_ids_of_a_tie_are_the_first() -> None:
    """Clients 1, 4 and 6 take 2 s, 3 s and 3 s, and 0 and 5 have 3 s left: with a limit of 3, they are 1, 0 and 4."""
    zeros = np.zeros(3)
    outcome = compute_outcome(Timing(zeros, zeros, np.array([2.0, 3, 3]), zeros), 1, 3.0, partial_work=False)
    is_awaited = np.array([False, False])
    round_end = RoundEnd(3.0, outcome, np.array([True, True]), np.array([True, True]), is_awaited)
    limited = limit_arrival_count(round_end, np.array([1, 4, 6]), np.array([0, 5]), np.array([3.0, 3.0]), 3)
    assert limited.outcome.is_in_time.tolist() == [True, True, False]
    assert limited.outcome.units_done.tolist() == [1, 1, 0]
    assert limited.has_ended.tolist() == [True, False]
    assert limit_arrival_count(round_end, np.array([1, 4, 6]), np.array([0, 5]), np.array([3.0, 3.0]), 5) is round_end


def test_an_awaited_arrival_extends_the_limit() -> None:
    """Clients 1 and 6 take 3 s, and 0 and 5 have 3 s left: with a limit of 1, the awaited client 5 is the third."""
    zeros = np.zeros(2)
    outcome = compute_outcome(Timing(zeros, zeros, np.array([3.0, 3]), zeros), 1, 3.0, partial_work=False)
    round_end = RoundEnd(3.0, outcome, np.array([True, True]), np.array([True, True]), np.array([False, True]))
    limited = limit_arrival_count(round_end, np.array([1, 6]), np.array([0, 5]), np.array([3.0, 3.0]), 1)
    assert limited.outcome.is_in_time.tolist() == [True, False]
    assert limited.has_ended.tolist() == [True, True]


def test_jobs_of_old_models_are_awaited_unless_they_never_end() -> None:
    jobs = make_jobs(broadcast=[7, 5, 4, 4], start_s=[0.0] * 4, duration_s=[9.0, 9, 9, np.inf])
    assert mark_awaited_jobs(jobs, 7, 2).tolist() == [False, True, True, False]
    assert not mark_awaited_jobs(jobs, 7, None).any()


def test_updates_within_the_limit_of_staleness_count() -> None:
    jobs = make_jobs(broadcast=[7, 5, 4])
    assert mark_usable_jobs(jobs, 7, 2).tolist() == [True, True, False]
    assert mark_usable_jobs(jobs, 7, None).all()


def test_time_that_has_passed_is_not_negative() -> None:
    jobs = make_jobs(start_s=[1.0, 2.0], duration_s=[5.0, 1.0])
    assert find_job_seconds_left(jobs, 4.0).tolist() == [2.0, 0.0]
