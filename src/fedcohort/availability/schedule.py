"""When each client is ready: intervals of virtual seconds, which repeat with a period.

    ready_k(t):  t mod P_k lies in one of k's intervals [a_j, b_j)
    completion_k(t, s):  the least w >= s such that k is ready for s of the seconds [t, t + w]

A client that leaves during a job resumes it when it returns. Ready in [10, 20) and [40, 50) of every 60 seconds, 8
seconds of work that begin at 15 end at 43, and at 73 where they begin at 45.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedcohort.types import Ids, ReadOnly, Values

NANOSECOND = 1e-9  # of remaining work at an interval's end is rounding, and does not move to the next interval


@dataclass(frozen=True)
class Schedule(ReadOnly):
    """When each client is ready. Several clients may share intervals.

    Attributes:
        start: second at which each interval begins; the intervals of a device are adjacent, ordered and disjoint,
            [intervals].
        end: second at which it ends, [intervals].
        first: position of each client's first interval, [clients].
        stop: position after its last, equal to `first` where it has none, [clients].
        period: seconds after which a client's intervals repeat, at least its last end, [clients].
    """

    start: Values
    end: Values
    first: Ids
    stop: Ids
    period: Values

    @classmethod
    def from_intervals(cls, intervals: Sequence[Sequence[tuple[float, float]]], period: float) -> "Schedule":
        """Return the schedule of clients whose intervals are listed in seconds, with the same period in seconds."""
        flat = np.array([interval for client in intervals for interval in client], dtype=np.float64).reshape(-1, 2)
        stop = np.cumsum([len(client) for client in intervals])
        first = np.concatenate([[0], stop[:-1]]).astype(np.int64)
        return cls(flat[:, 0], flat[:, 1], first, stop.astype(np.int64), np.full(len(stop), float(period)))

    @cached_property
    def seconds_before(self) -> Values:
        """Return the seconds of all intervals before each one, and of all together, [intervals + 1]."""
        return np.concatenate([[0.0], np.cumsum(self.end - self.start)])

    def seconds_until_ready(self, now: float) -> Values:
        """Return the seconds from `now` until each client is ready: 0 if it is, inf if it never is, [clients]."""
        waits = np.full(len(self.first), np.inf)
        (clients,) = np.nonzero(self.stop > self.first)
        first, stop, time = self.first[clients], self.stop[clients], now % self.period[clients]
        latest = _last_at_most(self.start, first, stop, time)
        is_ready = (latest >= first) & (time < self.end[latest])
        is_after_last_interval = latest + 1 == stop
        following = self.start[np.where(is_after_last_interval, first, latest + 1)] + np.where(
            is_after_last_interval, self.period[clients], 0.0
        )
        waits[clients] = np.where(is_ready, 0.0, following - time)
        return waits

    def completion_time(self, clients: Ids, now: float | Values, seconds: Values) -> Values:
        """Return the seconds until work that begins at `now` is complete, done only while a client is ready.

        Args:
            clients: ids, [n].
            now: virtual seconds since the run began, of all clients or of each, [n].
            seconds: seconds of work, [n]; zero work takes no time.
        """
        first, stop, period = self.first[clients], self.stop[clients], self.period[clients]
        time, total = now % period, self.seconds_before[stop] - self.seconds_before[first]
        completion = np.where(seconds > 0, np.inf, 0.0)
        (rows,) = np.nonzero((seconds > 0) & (total > 0))
        first, stop, period, time, total = (array[rows] for array in (first, stop, period, time, total))
        latest = _last_at_most(self.start, first, stop, time)
        seconds_inside_interval = np.where(
            latest >= first, np.minimum(time, self.end[latest]) - self.start[latest], 0.0
        )
        done = np.where(
            latest >= first, self.seconds_before[latest] - self.seconds_before[first] + seconds_inside_interval, 0.0
        )
        work_end = done + seconds[rows]
        n_periods = np.maximum(np.ceil((work_end - NANOSECOND) / total) - 1, 0.0)
        remainder = work_end - n_periods * total + self.seconds_before[first]
        final = np.maximum(_last_at_most(self.seconds_before, first, stop, remainder - NANOSECOND), first)
        ends = n_periods * period + self.start[final] + remainder - self.seconds_before[final]
        fits_in_interval = (latest >= first) & (time + seconds[rows] <= self.end[latest])
        completion[rows] = np.where(fits_in_interval, seconds[rows], np.maximum(ends - time, seconds[rows]))
        return completion


def _last_at_most(values: Values, first: Ids, stop: Ids, bound: Values) -> Ids:
    """Return the last position in [first, stop) whose value is at most `bound`, [n]; first - 1 without one.

    Args:
        values: ascending from each `first` to its `stop`.
        first: first position, [n].
        stop: position after the last, [n].
        bound: largest value, [n].
    """
    low, high = first - 1, stop.copy()
    while (is_open := high - low > 1).any():
        midpoint = (low + high) // 2
        is_below = is_open & (values[midpoint] <= bound)
        low, high = np.where(is_below, midpoint, low), np.where(is_open & ~is_below, midpoint, high)
    return low
