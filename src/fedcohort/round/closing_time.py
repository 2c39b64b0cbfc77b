"""When a round closes, and which jobs end before it does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.deadline.base import Deadline, DeadlineOutcome, compute_outcome
from fedcohort.round.dispatch_record import Dispatch
from fedcohort.round.in_flight import find_remaining_s
from fedcohort.round.jobs import Jobs
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class Closing:
    """The end of a round.

    Attributes:
        close_s: seconds from the start of the jobs to the second at which the deadline closes the round.
        outcome: the units of local work that each client of the cohort has completed by then.
        has_landed: whether each job that was in flight ends in the round, bool [jobs in flight].
        is_usable: whether the update of each of these jobs is recent enough to be used, bool [jobs in flight].
    """

    close_s: float
    outcome: DeadlineOutcome
    has_landed: Bool[np.ndarray, "_m"]
    is_usable: Bool[np.ndarray, "_m"]


def mark_usable_jobs(jobs: Jobs, round: int, max_staleness: int | None) -> Bool[np.ndarray, "_m"]:
    """Return whether the update of each job in flight counts if it arrives in this round, bool [len(jobs)].

    Args:
        jobs: the jobs in flight.
        round: number of the present round.
        max_staleness: largest number of rounds since the client received its model; None for no limit.
    """
    return np.full(len(jobs), fill_value=True) if max_staleness is None else round - jobs.broadcast <= max_staleness


def find_closing(
    dispatch: Dispatch,
    earlier_jobs: Jobs,
    deadline: Deadline[Any],
    deadline_state: object,
    wall_time: Callable[[Values], Values],
) -> Closing:
    """Return when the round ends, and which jobs end before that time.

    Jobs that end later are dropped, stay in flight, or are reduced to the units that are complete by then.

    Args:
        dispatch: decisions of the round before the training.
        earlier_jobs: jobs in flight that were sent in earlier rounds, or to clients that started during the round.
        deadline: the deadline of the run.
        deadline_state: state of the deadline.
        wall_time: function from the seconds of work of each selected client to the seconds until the work is complete.
    """
    jobs, announced_s = dispatch.jobs, dispatch.announced_s
    remaining_s = find_remaining_s(earlier_jobs, dispatch.start_s)
    is_usable = mark_usable_jobs(earlier_jobs, dispatch.round, deadline.staleness_limit())
    end_s = np.concatenate([jobs.duration_s, remaining_s[is_usable]])
    if not len(end_s):  # only clients whose updates are too old are at work: wait until they are free
        end_s = remaining_s
    if deadline.carries:
        end_s = end_s[np.isfinite(end_s)]
    close_s = deadline.close(deadline_state, end_s, announced_s) if len(end_s) else 0.0
    outcome = compute_outcome(jobs.timing, jobs.assigned, close_s, deadline.partial_work, announced_s, wall_time)
    if deadline.carries:  # the round lasts until the deadline if any job is still in flight
        outcome = replace(outcome, train_s=min(close_s, float(end_s.max(initial=0.0))))
    closing = Closing(close_s, outcome, remaining_s <= outcome.train_s, is_usable)
    limit = deadline.arrival_limit(deadline_state)
    return closing if limit is None else limit_arrivals(closing, jobs.client, earlier_jobs.client, remaining_s, limit)


def limit_arrivals(
    closing: Closing, clients: Ids, earlier_clients: Ids, remaining_s: Values, max_arrivals: int
) -> Closing:
    """Return the end of the round with only its first arrivals, ordered by time and then by client id.

    The other updates arrive in the same second as the last of these, and count in the next round.

    Args:
        closing: the end of the round with all arrivals.
        clients: sorted ids of the cohort.
        earlier_clients: sorted ids of the clients whose jobs were in flight.
        remaining_s: seconds until each of the jobs in flight ends.
        max_arrivals: largest number of updates that arrive in the round.
    """
    outcome, has_landed = closing.outcome, closing.has_landed
    is_arrival = np.concatenate([outcome.is_in_time, has_landed & closing.is_usable])
    if is_arrival.sum() <= max_arrivals:
        return closing
    client_ids, end_s = np.concatenate([clients, earlier_clients]), np.concatenate([outcome.finish_s, remaining_s])
    end_order = np.lexsort((client_ids, end_s))
    is_postponed = np.zeros(len(client_ids), dtype=bool)
    is_postponed[end_order[is_arrival[end_order]][max_arrivals:]] = True
    is_in_time = outcome.is_in_time & ~is_postponed[: len(clients)]
    outcome = replace(outcome, is_in_time=is_in_time, units_done=np.where(is_in_time, outcome.units_done, 0))
    return replace(closing, outcome=outcome, has_landed=has_landed & ~is_postponed[len(clients) :])
