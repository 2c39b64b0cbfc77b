"""When each client is ready: intervals of virtual seconds, which repeat with a period.

    ready_k(t)       = t mod P_k lies in one of k's intervals [a_j, b_j)
    stretch_k(t, s)  = the least w >= s such that k is ready for s of the seconds [t, t + w]

A client that leaves in the middle of a job goes on with it when it is back: ready in [10, 20) and [40, 50) of every 60
seconds, 8 seconds of work that begin at 15 end at 43, and at 73 where they begin at 45.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedcohort.types import Ids, ReadOnly, Values

NANOSECOND = 1e-9  # of work that is left when an interval ends: it's a sum's rounding, and not done in the next one


@dataclass(frozen=True)
class Schedule(ReadOnly):
    """When each client is ready. Several clients may have the same intervals.

    Attributes:
        start, end: seconds of each interval, those of one device together, in order and apart, [intervals].
        first, stop: positions of each client's first interval, and after its last; the same where it has none,
            [clients].
        period: seconds after which the intervals of each client repeat, its last end at least, [clients].
    """

    start: Values
    end: Values
    first: Ids
    stop: Ids
    period: Values

    @classmethod
    def of(cls, intervals: Sequence[Sequence[tuple[float, float]]], period: float) -> "Schedule":
        """Make the schedule of clients whose intervals are listed, in seconds; period: everybody's."""
        flat = np.array([each for own in intervals for each in own], dtype=np.float64).reshape(-1, 2)
        stop = np.cumsum([len(own) for own in intervals])
        first = np.concatenate([[0], stop[:-1]]).astype(np.int64)
        return cls(flat[:, 0], flat[:, 1], first, stop.astype(np.int64), np.full(len(stop), float(period)))

    @cached_property
    def before(self) -> Values:
        """Seconds in all intervals before each one, and in all together, [intervals + 1]."""
        return np.concatenate([[0.0], np.cumsum(self.end - self.start)])

    def waits(self, now: float) -> Values:
        """Return the seconds from `now` until each client is ready: 0 where it is, inf where it never is, [clients]."""
        waits = np.full(len(self.first), np.inf)
        (some,) = np.nonzero(self.stop > self.first)
        first, stop, at = self.first[some], self.stop[some], now % self.period[some]
        latest = _last(self.start, first, stop, at)
        is_ready = (latest >= first) & (at < self.end[latest])
        over = latest + 1 == stop
        following = self.start[np.where(over, first, latest + 1)] + np.where(over, self.period[some], 0.0)
        waits[some] = np.where(is_ready, 0.0, following - at)
        return waits

    def stretch(self, clients: Ids, now: float | Values, seconds: Values) -> Values:
        """Return how long work takes that begins `now`, if time counts while a client is ready alone.

        Args:
            clients: ids, [n].
            now: virtual seconds since the run began, of all clients or of each, [n].
            seconds: of work, [n]; no work takes no time.
        """
        first, stop, period = self.first[clients], self.stop[clients], self.period[clients]
        at, everything = now % period, self.before[stop] - self.before[first]
        found = np.where(seconds > 0, np.inf, 0.0)
        (some,) = np.nonzero((seconds > 0) & (everything > 0))
        first, stop, period, at, everything = (each[some] for each in (first, stop, period, at, everything))
        latest = _last(self.start, first, stop, at)
        inside = np.where(latest >= first, np.minimum(at, self.end[latest]) - self.start[latest], 0.0)
        done = np.where(latest >= first, self.before[latest] - self.before[first] + inside, 0.0)
        due = done + seconds[some]
        laps = np.maximum(np.ceil((due - NANOSECOND) / everything) - 1, 0.0)
        left = due - laps * everything + self.before[first]
        final = np.maximum(_last(self.before, first, stop, left - NANOSECOND), first)
        ends = laps * period + self.start[final] + left - self.before[final]
        stays = (latest >= first) & (at + seconds[some] <= self.end[latest])
        found[some] = np.where(stays, seconds[some], np.maximum(ends - at, seconds[some]))
        return found


def _last(values: Values, first: Ids, stop: Ids, least: Values) -> Ids:
    """The last position in [first, stop) whose value is at most `least`, first - 1 where there is none, [n].

    values: ascending from each `first` to its `stop`.
    """
    low, high = first - 1, stop.copy()
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        below = open_ & (values[np.minimum(middle, len(values) - 1)] <= least)
        low, high = np.where(below, middle, low), np.where(open_ & ~below, middle, high)
    return low
