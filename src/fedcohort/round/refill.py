"""Clients that start during a round, each when another one has finished, under deadlines with `refills`."""

import numpy as np

from fedcohort.round.closing import mark_usable
from fedcohort.round.components import ServerState
from fedcohort.round.dispatch import Dispatcher
from fedcohort.round.dispatched import Dispatch
from fedcohort.round.in_flight import count_down


def refill_places(step: Dispatch, dispatcher: Dispatcher, state: ServerState) -> Dispatch:
    """Return the decisions of a round in which each arrival but the last makes place for another client.

    Arrivals are taken in the order of time and id. A client whose update waits for the server's step can't be selected
    before that step: it would train the same model again.
    """
    deadline = dispatcher.components.deadline
    if not deadline.refills:
        return step
    busy, n_refills, has_arrived = state.in_flight.jobs.joined_with(step.jobs).without_lists(), 0, set[int]()
    while True:
        remaining_s = count_down(busy, step.start_s)
        is_usable = mark_usable(busy, step.round, deadline.staleness_limit())
        ends_s = remaining_s[is_usable & np.isfinite(remaining_s)]
        is_next = ~np.isin(busy.client, list(has_arrived))
        if not len(ends_s) or not is_next.any():
            break
        next_row = int(np.argmin(np.where(is_next, remaining_s, np.inf)))
        if remaining_s[next_row] >= deadline.close(state.deadline, ends_s, step.announced_s):
            break
        has_arrived.add(int(busy.client[next_row]))
        n_refills += 1
        refilled_step = dispatcher.refill(step, state, busy, step.start_s + float(remaining_s[next_row]), n_refills)
        is_new = ~np.isin(refilled_step.refilled.client, step.refilled.client)
        busy = busy.joined_with(refilled_step.refilled.select_jobs(is_new).without_lists())
        step = refilled_step
    return dispatcher.with_uniform_cohort(step) if len(step.refilled) else step
