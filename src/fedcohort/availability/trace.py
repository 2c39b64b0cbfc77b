"""A table of yours says when each client is ready: a row for each interval, in seconds of the virtual clock.

    client  start_s  end_s          ready at t where start_s <= t mod period < end_s
    anna          0  28800
    anna      79200  86400
    ben       36000  64800

    python train.py availability=trace availability.path=ready.csv availability.period_s=86400

Client k is the k-th device in the order of names (numbers by size, texts by letters; none left out of those that count
from 0 or 1), or with assign=drawn one that is drawn for it, once a run, as FLASH's benchmark does. What is drawn here
has nothing to do with what `device` draws. A device that is never ready has rows of a `state` other than 1.

A table whose first interval begins after 1e8 seconds, as in UNIX time, is moved: that interval begins at 0.

A table may be a grid instead: with step_s=1800 `start` counts half hours from 0, each row lasts one, and `end` isn't
read. Where one interval begins as another ends, the two are one.

Departures from the paper: none (of no paper). `benchmarks/fedscale_availability.py` makes such a table of FedScale's
file, and availability=phones names the columns of the 723 phones that were seen for five days.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.availability.base import Availability
from fedcohort.availability.schedule import Schedule
from fedcohort.component import PASSING_TIME, Requirement
from fedcohort.data.columns import Columns, check_path
from fedcohort.errors import DataError, OptionError
from fedcohort.ranks import rank
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

MOMENTS, MOST_S = "[0, 1e11]", 1e9  # of a table's cells, and of the seconds after its first interval begins
UNIX_S = 1e8  # a table whose first interval begins later than this counts from another origin, as UNIX time does
LEAST_S = 1e-6  # of an interval
UNIT = "seconds (divide milliseconds by 1000)"

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Trace(Availability):
    """Availability, with its options.

    Attributes:
        path: the table.
        client: column of names.
        start, end: columns of seconds; with `step_s` start is one of steps, and there is no end.
        step_s: seconds of a step, None where the table has intervals.
        state: column that is 1 where the client is ready, None where it is in all rows.
        period_s: seconds after which everything repeats, None for the table's last end.
        period: column of each client's own, None for everybody's.
        assign: by_id or drawn.
        idle: whether devices that are never ready are drawn, too; by_id draws none.
    """

    path: str
    client: str
    start: str
    end: str
    step_s: float | None
    state: str | None
    period_s: float | None
    period: str | None
    assign: str
    idle: bool

    recommendations: ClassVar[frozenset[Requirement]] = frozenset({PASSING_TIME})

    def __post_init__(self) -> None:
        check_path(self.path)
        for option in ("client", "start", "end"):
            ranges.text(option, getattr(self, option))
        for option in ("state", "period"):
            ranges.text(option, getattr(self, option), optional=True)
        ranges.number("step_s", self.step_s, "[1e-3, 1e9]", optional=True)
        ranges.number("period_s", self.period_s, "[1e-3, 1e9]", optional=True)
        if self.period is not None and self.period_s is not None:
            raise OptionError(
                f"period={self.period} names a column of periods and period_s={self.period_s} is one for all clients: "
                "set one of the two to null"
            )
        ends = {} if self.step_s is not None else {"end": self.end}
        names = {"client": self.client, "start": self.start, **ends, "state": self.state, "period": self.period}
        ranges.distinct(names)
        ranges.choice("assign", self.assign, "by_id", "drawn")
        ranges.flag("idle", self.idle)

    def notices(self, choice: str) -> Sequence[str]:
        """Say where nobody is drawn."""
        if self.idle or self.assign == "drawn":
            return ()
        line = "availability.idle=false has no effect with availability.assign=by_id: client k is the k-th device"
        return (f"{line}, whether or not that is ever ready (availability.assign=drawn draws among those that are)",)

    def schedule(self, draws: Draws) -> Schedule:
        """When each client is ready. Raises `DataError` for what is wrong with the table."""
        table = Columns.read("availability", self.path)
        order, counts = table.sort("client", self.client)
        start, end = (seconds[order] for seconds in self._read(table))
        device = np.repeat(np.arange(len(counts)), counts)
        self._check_order(order, device, start, end)
        period = self._periods(table, order, device, end)
        ready = np.ones(len(order), dtype=bool) if self.state is None else table.flags("state", self.state)[order]
        if not ready.any():
            raise DataError(f"availability.path: {self.path} has nobody who is ever ready")
        start, end, device = _join(start[ready], end[ready], device[ready])
        stop = np.cumsum(np.bincount(device, minlength=len(counts)))
        first = np.concatenate([[0], stop[:-1]])
        whole, missing = table.find_gap("client", self.client)
        if self.assign == "by_id" and draws.n_clients > whole:
            raise DataError(f"{missing}, or set availability.assign=drawn, which draws one for each client")
        mine = self._assign(first, stop, draws)
        return Schedule(start, end, first[mine], stop[mine], period[mine])

    def _read(self, table: Columns) -> tuple[Values, Values]:
        """Seconds at which each row's interval begins and ends, [rows]."""
        start = table.numbers("start", self.start, MOMENTS, UNIT)
        if self.step_s is None:
            return self._shift(start, table.numbers("end", self.end, MOMENTS, UNIT))
        if (parts := start != np.floor(start)).any():
            row = int(parts.argmax())
            where = f"availability.start: {self.path}: column {self.start!r}, row {row}"
            raise DataError(
                f"{where} holds {start[row]:g}: an integer is meant, as availability.step_s has it in steps"
            )
        if self.end in table.arrays and rank() == 0:
            log.warning(
                "availability.step_s=%g: each row of %s lasts one step, and its column %r is not read "
                "(availability.step_s=null reads it)",
                self.step_s,
                self.path,
                self.end,
            )
        return self._shift(start * self.step_s, (start + 1) * self.step_s)

    def _shift(self, start: Values, end: Values) -> tuple[Values, Values]:
        """Move intervals that count from another origin, as UNIX time does, to second 0 of the virtual clock.

        Raises `DataError` for the first row that ends later than the clock is meant to run.
        """
        origin = float(start.min()) if start.min() > UNIX_S else 0.0
        if origin and rank() == 0:
            log.warning(
                "availability.path: the first interval of %s begins at %.10g seconds, as in UNIX time: the virtual "
                "clock starts there, and all intervals begin %.10g seconds earlier",
                self.path,
                origin,
                origin,
            )
        start, end = start - origin, end - origin
        if (beyond := end > MOST_S).any():
            row = int(beyond.argmax())
            raise DataError(
                f"availability.{'end' if self.step_s is None else 'start'}: {self.path}: row {row} ends {end[row]:g} "
                f"seconds after the table begins; at most 1e9 are allowed: count all rows from the same second"
            )
        return start, end

    def _check_order(self, order: Ids, device: Ids, start: Values, end: Values) -> None:
        """Raise `DataError` for the first interval that is empty, or begins before the one before it is over."""
        where = f"availability.start: {self.path}: row"
        if (empty := end - start < LEAST_S).any():
            row = int(order[empty].min())
            i = int(np.flatnonzero(order == row)[0])
            raise DataError(
                f"{where} {row} begins at {start[i]:g} and ends at {end[i]:g}: an interval must be longer "
                "than a microsecond"
            )
        if (early := (device[1:] == device[:-1]) & (start[1:] < end[:-1])).any():
            i = int(early.argmax())
            raise DataError(
                f"{where} {order[i + 1]} begins at {start[i + 1]:g}, before row {order[i]} of the same client ends at "
                f"{end[i]:g}: the intervals of a client must be in order and apart"
            )

    def _periods(self, table: Columns, order: Ids, device: Ids, end: Values) -> Values:
        """Seconds after which each device repeats, [devices]. Raises `DataError` where an interval is outside."""
        each = np.full(len(order), end.max() if self.period_s is None else self.period_s, dtype=np.float64)
        option = "period_s"
        if self.period is not None:
            option, each = "period", table.numbers("period", self.period, "[1e-3, 1e9]", "seconds")[order]
        if (odd := (device[1:] == device[:-1]) & (each[1:] != each[:-1])).any():
            i = int(odd.argmax())
            raise DataError(
                f"availability.period: {self.path}: row {order[i + 1]} has a period of {each[i + 1]:g} seconds, and "
                f"row {order[i]} of the same client {each[i]:g}"
            )
        if (outside := end > each).any():
            i = int(outside.argmax())
            raise DataError(
                f"availability.{option}: {self.path}: row {order[i]} ends at {end[i]:g}, after the period of "
                f"{each[i]:g} seconds"
            )
        periods: Values = each[np.flatnonzero(np.diff(device, prepend=-1))]
        return periods

    def _assign(self, first: Ids, stop: Ids, draws: Draws) -> Ids:
        """The device of each client, in the order of names."""
        devices = np.arange(len(first)) if self.idle else np.flatnonzero(stop > first)
        if self.assign == "drawn":
            drawn: Ids = devices[(len(devices) * draws.uniform("available_device")).astype(np.int64)]
            return drawn
        if len(first) < draws.n_clients:
            raise DataError(
                f"availability.path: {self.path} has {len(first)} clients, too few for {draws.n_clients}: "
                "availability.assign=drawn draws one of them for each"
            )
        return np.arange(draws.n_clients)


def _join(start: Values, end: Values, device: Ids) -> tuple[Values, Values, Ids]:
    """Make one interval of those of a device that touch; all three in order, [intervals]."""
    apart = (device[1:] != device[:-1]) | (start[1:] > end[:-1])
    first, last = np.concatenate([[True], apart]), np.concatenate([apart, [True]])
    return start[first], end[last], device[first]
