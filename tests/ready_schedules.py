"""Schedules of availability from lists of intervals."""

from collections.abc import Sequence

import numpy as np

from fedcohort.availability.schedule import ReadySchedule


def make_schedule(intervals_by_client: Sequence[Sequence[tuple[float, float]]], period_s: float) -> ReadySchedule:
    """Return the schedule of clients with the given intervals, which repeat after `period_s` seconds.

    `intervals_by_client` holds (start, end) in seconds of each interval of each client, in order.
    """
    interval_bounds_s = np.array(
        [interval for client_intervals in intervals_by_client for interval in client_intervals], dtype=np.float64
    ).reshape(-1, 2)
    start_s, end_s = interval_bounds_s[:, 0], interval_bounds_s[:, 1]
    stop_interval = np.cumsum([len(client_intervals) for client_intervals in intervals_by_client])
    first_interval = np.concatenate([[0], stop_interval[:-1]]).astype(np.int64)
    periods_s = np.full(len(stop_interval), float(period_s))
    return ReadySchedule(start_s, end_s, first_interval, stop_interval.astype(np.int64), periods_s)
