"""A user's table of when each client is ready: a row for each interval, in seconds of the virtual clock.

    client  start_s  end_s          ready at t where start_s <= t mod period < end_s
    anna          0  28800
    anna      79200  86400
    ben       36000  64800

    python train.py availability=trace availability.path=ready.csv availability.period_s=86400

Client k is the k-th device in the order of names: numbers by value, texts alphabetically, without gaps where names are
numbers from 0 or 1. With assign=drawn a device is drawn for each client once a run, independently of the draws of
`device`. A device that is never ready has rows with a `state` other than 1.

A table whose first interval begins after 1e8 seconds, as in UNIX time, is shifted so that this interval begins at 0. A
table may also be a grid: with step_s=1800 `start` counts half hours from 0, each row lasts one, and `end` is not read.
Intervals that touch are joined.

Departures from the paper: none (no paper). `benchmarks/fedscale_availability.py` converts FedScale's file, and
availability=phones sets the columns of a table of 723 phones over five days.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.availability.base import Availability
from fedcohort.availability.schedule import Schedule
from fedcohort.component import ADVANCING_CLOCK, Requirement
from fedcohort.dataset import trace_table
from fedcohort.errors import DataError, OptionError
from fedcohort.ranks import rank_of_process
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from fedcohort.dataset.table import Frame

CELL_RANGE, MAX_S = "[0, 1e11]", 1e9  # range of a table's cells, and of the seconds after its first interval begins
MIN_UNIX_S = 1e8  # a table whose first interval begins later counts from another origin, as UNIX time does
MIN_S = 1e-6  # shortest interval
UNIT_HINT = "seconds (divide milliseconds by 1000)"

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Trace(Availability):
    """An availability model that reads a user's table of the intervals in which each client is ready.

    Attributes:
        path: the table.
        client: column of names.
        start: column of seconds, or of steps with `step_s`.
        end: column of seconds, not read with `step_s`.
        step_s: seconds of a step, None if the table has intervals.
        state: column that is 1 where the client is ready, None if it is in all rows.
        period_s: seconds after which the table repeats, None for its last end.
        period: column of each client's own period, or None.
        assign: "by_id" or "drawn".
        idle: whether devices that are never ready are drawn; no effect with by_id.
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

    recommendations: ClassVar[frozenset[Requirement]] = frozenset({ADVANCING_CLOCK})

    def __post_init__(self) -> None:
        trace_table.check_path(self.path)
        for option in ("client", "start", "end"):
            ranges.text(option, getattr(self, option))
        for option in ("state", "period"):
            ranges.text(option, getattr(self, option), allow_null=True)
        ranges.number("step_s", self.step_s, "[1e-3, 1e9]", allow_null=True)
        ranges.number("period_s", self.period_s, "[1e-3, 1e9]", allow_null=True)
        if self.period is not None and self.period_s is not None:
            raise OptionError(
                f"period={self.period} names a column of periods and period_s={self.period_s} is one for all clients: "
                "set one of the two to null"
            )
        ends = {} if self.step_s is not None else {"end": self.end}
        names = {"client": self.client, "start": self.start, **ends, "state": self.state, "period": self.period}
        ranges.check_distinct_columns(names)
        ranges.choice("assign", self.assign, "by_id", "drawn")
        ranges.flag("idle", self.idle)

    def notices(self, choice: str) -> Sequence[str]:
        """Return a start-up notice if the option `idle` has no effect."""
        if self.idle or self.assign == "drawn":
            return ()
        line = "availability.idle=false has no effect with availability.assign=by_id: client k is the k-th device"
        return (f"{line}, whether or not that is ever ready (availability.assign=drawn draws among those that are)",)

    def schedule(self, draws: Draws) -> Schedule:
        """Read the table, and return the intervals in which each client is ready.

        Raises:
            DataError: the table has an error.
        """
        columns = {option: getattr(self, option) for option in ("client", "start", "end", "state", "period")}
        table = trace_table.read_table("availability", self.path, columns)
        order, counts, (complete, missing) = trace_table.sort_by_name(table, self.client)
        start, end = (seconds[order] for seconds in self._read_intervals(table))
        device = np.repeat(np.arange(len(counts)), counts)
        self._check_order(order, device, start, end)
        period = self._read_periods(table, order, device, end)
        ready = (
            np.ones(len(order), dtype=bool) if self.state is None else trace_table.read_flags(table, self.state)[order]
        )
        if not ready.any():
            raise DataError(
                f"availability.path: {self.path} has no client that is ever available: check start and end of intervals"
            )
        start, end, device = _merge_intervals(start[ready], end[ready], device[ready])
        stop = np.cumsum(np.bincount(device, minlength=len(counts)))
        first = np.concatenate([[0], stop[:-1]])
        if self.assign == "by_id" and draws.n_clients > complete:
            raise DataError(f"{missing}, or set availability.assign=drawn, which draws one for each client")
        assigned = self._assign_devices(first, stop, draws)
        return Schedule(start, end, first[assigned], stop[assigned], period[assigned])

    def _read_intervals(self, table: "Frame") -> tuple[Values, Values]:
        """Return the seconds at which each row's interval begins and ends, [rows] each.

        Times that count from another origin, as UNIX time does, are shifted to second 0 of the virtual clock.

        Raises:
            DataError: a step is not an integer, or a row ends later than the clock is designed to run.
        """
        start = trace_table.read_numbers(table, self.start, CELL_RANGE, UNIT_HINT)
        if self.step_s is None:
            end = trace_table.read_numbers(table, self.end, CELL_RANGE, UNIT_HINT)
        else:
            allowed = "expected an integer number of steps of availability.step_s seconds"
            table.check_cells(self.start, start != np.floor(start), lambda row: f"holds {start[row]:g}: {allowed}")
            if self.end in table.names:
                _warn(
                    f"availability.step_s={self.step_s:g}: each row of {self.path} lasts one step, and its column "
                    f"{self.end!r} is not read (availability.step_s=null reads it)"
                )
            start, end = start * self.step_s, (start + 1) * self.step_s
        origin = float(start.min()) if start.min() > MIN_UNIX_S else 0.0
        if origin:
            _warn(
                f"availability.path: the first interval of {self.path} begins at {origin:.10g} seconds, as in UNIX "
                f"time: the virtual clock starts there, and all intervals begin {origin:.10g} seconds earlier"
            )
        start, end = start - origin, end - origin
        if (is_late := end > MAX_S).any():
            row = int(is_late.argmax())
            what = f"ends {end[row]:g} seconds after the table begins; at most 1e9 are allowed"
            option = "end" if self.step_s is None else "start"
            raise self._row_error(option, row, f"{what}: count all rows from the same second")
        return start, end

    def _row_error(self, option: str, row: int, what: str) -> DataError:
        return DataError(f"availability.{option}: {self.path}: row {row} {what}")

    def _check_order(self, order: Ids, device: Ids, start: Values, end: Values) -> None:
        """Check that the intervals of each device in the table are in order and do not overlap.

        Raises:
            DataError: an interval is empty, or begins before the previous one ends.
        """
        if (empty := end - start < MIN_S).any():
            i = int(np.flatnonzero(empty)[order[empty].argmin()])
            what = f"begins at {start[i]:g} and ends at {end[i]:g}: an interval must be at least a microsecond long"
            raise self._row_error("start", int(order[i]), what)
        if (is_overlap := (device[1:] == device[:-1]) & (start[1:] < end[:-1])).any():
            i = int(is_overlap.argmax())
            what = f"begins at {start[i + 1]:g}, before row {order[i]} of the same client ends at {end[i]:g}"
            remedy = "the intervals of a client must be in order and apart"
            raise self._row_error("start", int(order[i + 1]), f"{what}: {remedy}")

    def _read_periods(self, table: "Frame", order: Ids, device: Ids, end: Values) -> Values:
        """Return the seconds after which each device repeats, [devices].

        Raises:
            DataError: a device has two periods, or an interval ends after its period.
        """
        option, periods = "period_s", np.full(len(order), end.max() if self.period_s is None else float(self.period_s))
        if self.period is not None:
            option, periods = "period", trace_table.read_numbers(table, self.period, "[1e-3, 1e9]", "seconds")[order]
        if (differs_from_previous := (device[1:] == device[:-1]) & (periods[1:] != periods[:-1])).any():
            i = int(differs_from_previous.argmax())
            what = f"has a period of {periods[i + 1]:g} seconds, and row {order[i]} of the same client {periods[i]:g}"
            raise self._row_error("period", int(order[i + 1]), what)
        if (is_outside := end > periods).any():
            i = int(is_outside.argmax())
            what = f"ends at {end[i]:g}, after the period of {periods[i]:g} seconds"
            raise self._row_error(option, int(order[i]), what)
        device_periods: Values = periods[np.flatnonzero(np.diff(device, prepend=-1))]
        return device_periods

    def _assign_devices(self, first: Ids, stop: Ids, draws: Draws) -> Ids:
        """Return the device that stands for each client, as its position in the order of device names, [n_clients]."""
        devices = np.arange(len(first)) if self.idle else np.flatnonzero(stop > first)
        if self.assign == "drawn":
            drawn_devices: Ids = devices[(len(devices) * draws.uniform("available_device")).astype(np.int64)]
            return drawn_devices
        if len(first) < draws.n_clients:
            raise DataError(
                f"availability.path: {self.path} has {len(first)} clients, too few for {draws.n_clients}: "
                "availability.assign=drawn draws one of them for each"
            )
        return np.arange(draws.n_clients)


def _warn(message: str) -> None:
    if rank_of_process() == 0:
        log.warning(message)


def _merge_intervals(start: Values, end: Values, device: Ids) -> tuple[Values, Values, Ids]:
    """Merge intervals of a device that touch or overlap; return starts, ends and devices, each [intervals]."""
    starts_new_interval = (device[1:] != device[:-1]) | (start[1:] > end[:-1])
    first, last = np.concatenate([[True], starts_new_interval]), np.concatenate([starts_new_interval, [True]])
    return start[first], end[last], device[first]
