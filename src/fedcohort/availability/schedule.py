"""When each client is ready: intervals of virtual seconds, which repeat with a period.

    ready_k(t):  t mod P_k lies in one of k's intervals [a_j, b_j)
    completion_k(t, s):  the least w >= s such that k is ready for s of the seconds [t, t + w]

A client that leaves during a job resumes it when it returns. Ready in [10, 20) and [40, 50) of every 60 seconds, 8
seconds of work that begin at 15 end at 43, and at 73 where they begin at 45.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool

from fedcohort.types import Ids, ReadOnly, Values

WORK_TOLERANCE_S = 1e-9  # remaining work up to this does not move to the next interval: it is rounding


@dataclass(frozen=True)
class ReadySchedule(ReadOnly):
    """The intervals of virtual seconds in which each client is ready. Several clients may share intervals.

    Attributes:
        start_s: second at which each interval begins, [intervals]; the intervals of a client are adjacent in the array,
            ordered and disjoint.
        end_s: second at which each interval ends, [intervals].
        first_interval: position of each client's first interval, [n_clients].
        stop_interval: position after each client's last interval, [n_clients]; `first_interval` without intervals.
        period_s: seconds after which a client's intervals repeat, at least the end of its last interval, [n_clients].
    """

    start_s: Values
    end_s: Values
    first_interval: Ids
    stop_interval: Ids
    period_s: Values

    @cached_property
    def ready_s_before(self) -> Values:
        """Total seconds of all intervals before each interval, and of all intervals, [intervals + 1]."""
        return np.concatenate([[0.0], np.cumsum(self.end_s - self.start_s)])

    def seconds_until_ready(self, now_s: float) -> Values:
        """Return the seconds from second `now_s` until each client is ready, [n_clients]; inf if it is never ready."""
        is_ready, seconds_to_change = self.next_change(np.arange(len(self.first_interval)), now_s)
        return np.where(is_ready, 0.0, seconds_to_change)

    def next_change(self, client_ids: Ids, now_s: float) -> tuple[Bool[np.ndarray, "n"], Values]:
        """Return whether each client is ready at second `now_s`, [n], and the seconds until this may change, [n].

        These are the seconds until its interval ends, or until its next one begins; inf for a client that is never
        ready. An interval that ends with the period may continue in the next one. `client_ids` are the ids, [n].
        """
        is_ready, seconds_to_change = np.zeros(len(client_ids), dtype=bool), np.full(len(client_ids), np.inf)
        (positions_with_intervals,) = np.nonzero(self.stop_interval[client_ids] > self.first_interval[client_ids])
        scheduled_ids = client_ids[positions_with_intervals]
        first_interval, stop_interval = self.first_interval[scheduled_ids], self.stop_interval[scheduled_ids]
        phase_s = now_s % self.period_s[scheduled_ids]
        latest_interval = _last_position_at_most(self.start_s, first_interval, stop_interval, phase_s)
        is_ready[positions_with_intervals] = (latest_interval >= first_interval) & (
            phase_s < self.end_s[latest_interval]
        )
        is_after_last_interval = latest_interval + 1 == stop_interval
        next_start_s = self.start_s[np.where(is_after_last_interval, first_interval, latest_interval + 1)] + np.where(
            is_after_last_interval, self.period_s[scheduled_ids], 0.0
        )
        seconds_to_change[positions_with_intervals] = (
            np.where(is_ready[positions_with_intervals], self.end_s[latest_interval], next_start_s) - phase_s
        )
        return is_ready, seconds_to_change

    def ready_share(self, client_ids: Ids, start_s: float, end_s: float) -> Values:
        """Return the share of the seconds from `start_s` to `end_s` > `start_s` in which each client is ready, [n].

        `client_ids` are the ids of the clients, [n].
        """
        first_interval, stop_interval = self.first_interval[client_ids], self.stop_interval[client_ids]
        period_s, ready_s = (
            self.period_s[client_ids],
            self.ready_s_before[stop_interval] - self.ready_s_before[first_interval],
        )
        ready_s_before_bounds = []
        for window_bound_s in (start_s, end_s):
            latest_interval = _last_position_at_most(
                self.start_s, first_interval, stop_interval, window_bound_s % period_s
            )
            ready_s_in_period = self._ready_s_in_period(first_interval, latest_interval, window_bound_s % period_s)
            ready_s_before_bounds.append(window_bound_s // period_s * ready_s + ready_s_in_period)
        return np.asarray(np.clip((ready_s_before_bounds[1] - ready_s_before_bounds[0]) / (end_s - start_s), 0.0, 1.0))

    def _ready_s_in_period(self, first_interval: Ids, latest_interval: Ids, phase_s: Values) -> Values:
        """Return the seconds in which each client is ready in its period before second `phase_s` of it, [n].

        Args:
            first_interval: position of the client's first interval, [n].
            latest_interval: position of the last interval that begins by then, `first_interval` - 1 without one, [n].
            phase_s: second within the client's period, [n].
        """
        has_interval = latest_interval >= first_interval
        interval_s = np.where(
            has_interval, np.minimum(phase_s, self.end_s[latest_interval]) - self.start_s[latest_interval], 0.0
        )
        ready_s_of_past_intervals = self.ready_s_before[latest_interval] - self.ready_s_before[first_interval]
        return np.where(has_interval, ready_s_of_past_intervals + interval_s, 0.0)

    def completion_time(self, client_ids: Ids, now_s: float | Values, work_s: Values) -> Values:
        """Return the seconds from `now_s` until work is complete that clients do only while they are ready, [n].

        Args:
            client_ids: ids of the clients that work, [n].
            now_s: virtual second at which the work begins, one number or one per client, [n].
            work_s: seconds of work of each client, [n]; the result is 0 for zero work, inf for work that never ends.
        """
        first_interval, stop_interval = self.first_interval[client_ids], self.stop_interval[client_ids]
        period_s = self.period_s[client_ids]
        phase_s, ready_s = now_s % period_s, self.ready_s_before[stop_interval] - self.ready_s_before[first_interval]
        completion_s = np.where(work_s > 0, np.inf, 0.0)
        (positions_with_work,) = np.nonzero((work_s > 0) & (ready_s > 0))
        interval_values = (first_interval, stop_interval, period_s, phase_s, ready_s)
        first_interval, stop_interval, period_s, phase_s, ready_s = (
            values[positions_with_work] for values in interval_values
        )
        remaining_work_s = work_s[positions_with_work]
        latest_interval = _last_position_at_most(self.start_s, first_interval, stop_interval, phase_s)
        ready_s_in_period = self._ready_s_in_period(first_interval, latest_interval, phase_s)
        work_end_s = ready_s_in_period + remaining_work_s
        n_periods = np.maximum(np.ceil((work_end_s - WORK_TOLERANCE_S) / ready_s) - 1, 0.0)
        ready_s_at_work_end = work_end_s - n_periods * ready_s + self.ready_s_before[first_interval]
        search_limit_s = ready_s_at_work_end - WORK_TOLERANCE_S
        end_interval = _last_position_at_most(self.ready_s_before, first_interval, stop_interval, search_limit_s)
        end_interval = np.maximum(end_interval, first_interval)
        end_s = (
            n_periods * period_s + self.start_s[end_interval] + ready_s_at_work_end - self.ready_s_before[end_interval]
        )
        fits_in_interval = (latest_interval >= first_interval) & (
            phase_s + remaining_work_s <= self.end_s[latest_interval]
        )
        completion_s[positions_with_work] = np.where(
            fits_in_interval, remaining_work_s, np.maximum(end_s - phase_s, remaining_work_s)
        )
        return completion_s


class ReadyClientTracker:
    """A tracker that finds the ready clients at increasing seconds, and checks only those that may have changed.

    Args:
        schedule: intervals in which clients are ready.
    """

    def __init__(self, schedule: ReadySchedule) -> None:
        n_clients = len(schedule.first_interval)
        self.schedule, self.last_s = schedule, math.inf
        self.is_ready, self.unchanged_until_s = np.zeros(n_clients, dtype=bool), np.zeros(n_clients)

    def find_ready_clients_now(self, now_s: float) -> Ids:
        """Return the sorted ids of the clients that are ready at second `now_s`, which may be before the last call."""
        if now_s < self.last_s:
            self.unchanged_until_s[:] = -math.inf
        (outdated_ids,) = np.nonzero(self.unchanged_until_s <= now_s)
        is_ready, seconds_to_change = self.schedule.next_change(outdated_ids, now_s)
        self.is_ready[outdated_ids] = is_ready
        rounding_margin_s = WORK_TOLERANCE_S * max(1.0, abs(now_s))
        self.unchanged_until_s[outdated_ids], self.last_s = now_s + seconds_to_change - rounding_margin_s, now_s
        return np.flatnonzero(self.is_ready)


def _last_position_at_most(ascending_values: Values, first_position: Ids, stop_position: Ids, max_value: Values) -> Ids:
    """Return the last position in each range whose value is at most `max_value`, [n]; `first_position` - 1 if none.

    Args:
        ascending_values: values of all ranges, ascending within each range.
        first_position: first position of each range, [n].
        stop_position: position after the last one of each range, [n].
        max_value: largest value that counts in each range, [n].
    """
    lower_position, upper_position = first_position - 1, stop_position.copy()
    while (is_still_searching := upper_position - lower_position > 1).any():
        middle_position = (lower_position + upper_position) // 2
        is_at_most_limit = is_still_searching & (ascending_values[middle_position] <= max_value)
        lower_position = np.where(is_at_most_limit, middle_position, lower_position)
        upper_position = np.where(is_still_searching & ~is_at_most_limit, middle_position, upper_position)
    return lower_position
