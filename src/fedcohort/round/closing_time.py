"""When a round closes, and which jobs end before it does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.deadline.base import Deadline, DeadlineOutcome, compute_outcome
from fedcohort.round.dispatch_record import Dispatch
from fedcohort.round.in_flight import find_job_seconds_left
from fedcohort.round.jobs import Jobs
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class RoundEnd:
    """The time at which a round ends, the work done by then, and the earlier jobs that end in the round.

    Attributes:
        close_s: seconds from the start of the jobs to the second at which the deadline closes the round.
        outcome: the units of local work that each client of the cohort has completed by then.
        has_ended: whether each job that was in flight ends in the round, bool [jobs in flight].
        is_update_usable: whether the update of each of these jobs is recent enough to be used, bool [jobs in flight].
        is_awaited: whether the round does not end before each of these jobs, bool [jobs in flight].
    """

    close_s: float
    outcome: DeadlineOutcome
    has_ended: Bool[np.ndarray, "_m"]
    is_update_usable: Bool[np.ndarray, "_m"]
    is_awaited: Bool[np.ndarray, "_m"]


def mark_usable_jobs(jobs: Jobs, round: int, max_staleness: int | None) -> Bool[np.ndarray, "_m"]:
    """Return whether the update of each job in flight counts if it arrives in this round, bool [len(jobs)].

    Args:
        jobs: the jobs in flight.
        round: number of the present round.
        max_staleness: largest number of rounds since the client received its model; None for no limit.
    """
    return np.full(len(jobs), fill_value=True) if max_staleness is None else round - jobs.broadcast <= max_staleness


def mark_awaited_jobs(jobs: Jobs, round: int, awaited_staleness: int | None) -> Bool[np.ndarray, "_m"]:
    """Return whether the server waits for each job in flight before it ends this round, bool [len(jobs)].

    Args:
        jobs: the jobs in flight. Jobs that never end are not waited for.
        round: number of the present round.
        awaited_staleness: rounds since a client received its model after which the server waits for it; None if never.
    """
    if awaited_staleness is None:
        return np.full(len(jobs), fill_value=False)
    return np.asarray(np.isfinite(jobs.end_s) & (round - jobs.broadcast >= awaited_staleness))


def find_round_end(
    dispatch: Dispatch,
    jobs_in_flight: Jobs,
    deadline: Deadline[Any],
    deadline_state: object,
    wall_time: Callable[[Values], Values],
) -> RoundEnd:
    """Return when the round ends, and which jobs end before that time.

    Jobs that end later are dropped, stay in flight, or are reduced to the units that are complete by then.

    Args:
        dispatch: decisions of the round before the training.
        jobs_in_flight: jobs in flight that were sent in earlier rounds, or to clients that started during the round.
        deadline: the deadline of the run.
        deadline_state: state of the deadline.
        wall_time: function from the seconds of work of each selected client to the seconds until the work is complete.
    """
    jobs, deadline_s = dispatch.jobs, dispatch.deadline_s
    remaining_s = find_job_seconds_left(jobs_in_flight, dispatch.start_s)
    is_update_usable = mark_usable_jobs(jobs_in_flight, dispatch.round, deadline.staleness_limit())
    job_end_s = np.concatenate([jobs.duration_s, remaining_s[is_update_usable]])
    if not len(job_end_s):
        # Only updates that are too old are under way: wait until as many clients are free as updates end a round.
        job_end_s = remaining_s
    if deadline.carries:
        job_end_s = job_end_s[np.isfinite(job_end_s)]
    close_s = deadline.close(deadline_state, job_end_s, deadline_s) if len(job_end_s) else 0.0
    is_awaited = mark_awaited_jobs(jobs_in_flight, dispatch.round, deadline.awaited_staleness())
    close_s = max(close_s, float(remaining_s[is_awaited].max(initial=0.0)))
    outcome = compute_outcome(jobs.timing, jobs.assigned, close_s, deadline.partial_work, deadline_s, wall_time)
    if deadline.carries:  # the round lasts until the deadline if any job is still in flight
        outcome = replace(outcome, train_s=min(close_s, float(job_end_s.max(initial=0.0))))
    round_end = RoundEnd(close_s, outcome, remaining_s <= outcome.train_s, is_update_usable, is_awaited)
    arrival_limit = deadline.arrival_limit(deadline_state)
    if arrival_limit is None:
        return round_end
    return limit_arrival_count(round_end, jobs.client, jobs_in_flight.client, remaining_s, arrival_limit)


def limit_arrival_count(
    round_end: RoundEnd, clients: Ids, in_flight_client_ids: Ids, remaining_s: Values, max_arrivals: int
) -> RoundEnd:
    """Return the end of the round with only its first arrivals, ordered by time and then by client id.

    The last of them is arrival number `max_arrivals`, or the last awaited one if it is later.
    The other updates arrive in the same second as the last of these, and count in the next round.

    Args:
        round_end: the end of the round with all arrivals.
        clients: sorted ids of the cohort.
        in_flight_client_ids: sorted ids of the clients whose jobs were in flight.
        remaining_s: seconds until each of the jobs in flight ends.
        max_arrivals: largest number of updates that arrive in the round if none is awaited.
    """
    outcome, has_ended = round_end.outcome, round_end.has_ended
    arrives_in_round = np.concatenate([outcome.is_in_time, has_ended & round_end.is_update_usable])
    if arrives_in_round.sum() <= max_arrivals:
        return round_end
    client_ids = np.concatenate([clients, in_flight_client_ids])
    job_end_order = np.lexsort((client_ids, np.concatenate([outcome.finish_s, remaining_s])))
    is_deferred = np.zeros(len(client_ids), dtype=bool)
    arrival_order = job_end_order[arrives_in_round[job_end_order]]
    awaited_positions = len(clients) + np.flatnonzero(round_end.is_awaited)
    n_needed_arrivals = 1 + int(np.flatnonzero(np.isin(arrival_order, awaited_positions)).max(initial=-1))
    is_deferred[arrival_order[max(max_arrivals, n_needed_arrivals) :]] = True
    is_job_in_time = outcome.is_in_time & ~is_deferred[: len(clients)]
    outcome = replace(outcome, is_in_time=is_job_in_time, units_done=np.where(is_job_in_time, outcome.units_done, 0))
    return replace(round_end, outcome=outcome, has_ended=has_ended & ~is_deferred[len(clients) :])
