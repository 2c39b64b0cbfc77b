"""Clients that start during a round, each when another one has finished, under deadlines with `refills`."""

import numpy as np

from fedcohort.round.closing_time import mark_awaited_jobs, mark_usable_jobs
from fedcohort.round.components import ServerState
from fedcohort.round.dispatch import Dispatcher
from fedcohort.round.dispatch_record import Dispatch
from fedcohort.round.in_flight import find_job_seconds_left


def replace_arrived_clients(dispatch: Dispatch, dispatcher: Dispatcher, server_state: ServerState) -> Dispatch:
    """Return the decisions of a round in which another client starts after each arrival but the last.

    Arrivals are taken in the order of time and id. A client whose update waits for the server's step can't be selected
    before that step: it would train the same model again.

    Args:
        dispatch: decisions of the round for its first cohort.
        dispatcher: decides on each further client.
        server_state: state of the server before the round.
    """
    deadline = dispatcher.components.deadline
    if not deadline.refills:
        return dispatch
    busy_jobs = server_state.in_flight.jobs.merge_jobs(dispatch.jobs).drop_list_columns()
    arrived_ids = set[int]()
    while True:
        remaining_s = find_job_seconds_left(busy_jobs, dispatch.start_s)
        is_update_usable = mark_usable_jobs(busy_jobs, dispatch.round, deadline.staleness_limit())
        usable_remaining_s = remaining_s[is_update_usable & np.isfinite(remaining_s)]
        has_not_arrived = ~np.isin(busy_jobs.client, list(arrived_ids))
        if not len(usable_remaining_s) or not has_not_arrived.any():
            break
        next_arrival_row = int(np.argmin(np.where(has_not_arrived, remaining_s, np.inf)))
        is_awaited = mark_awaited_jobs(busy_jobs, dispatch.round, deadline.awaited_staleness())
        close_s = deadline.close(server_state.deadline, usable_remaining_s, dispatch.deadline_s)
        if remaining_s[next_arrival_row] >= max(close_s, remaining_s[is_awaited].max(initial=0.0)):
            break
        arrived_ids.add(int(busy_jobs.client[next_arrival_row]))
        arrival_s = dispatch.start_s + float(remaining_s[next_arrival_row])
        next_dispatch = dispatcher.add_refill_client(dispatch, server_state, busy_jobs, arrival_s, len(arrived_ids))
        is_new_job = ~np.isin(next_dispatch.refill_jobs.client, dispatch.refill_jobs.client)
        busy_jobs = busy_jobs.merge_jobs(next_dispatch.refill_jobs.select_jobs(is_new_job).drop_list_columns())
        dispatch = next_dispatch
    return dispatcher.add_uniform_cohort(dispatch) if len(dispatch.refill_jobs) else dispatch
