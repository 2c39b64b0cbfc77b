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
from fedcohort.availability.schedule import ReadySchedule
from fedcohort.component import ADVANCING_CLOCK, Requirement
from fedcohort.dataset import trace_table
from fedcohort.errors import DataError, OptionError
from fedcohort.process_ranks import rank_of_process
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from fedcohort.dataset.table import Frame

TABLE_SECONDS_RANGE = "[0, 1e11]"  # of a table's cells
MAX_INTERVAL_END_S = 1e9  # latest end of an interval, in seconds after the first interval of the table begins
MIN_UNIX_S = 1e8  # a table whose first interval begins later counts from another origin, as UNIX time does
MIN_INTERVAL_S = 1e-6  # shortest interval
SECONDS_UNIT_TEXT = "seconds (divide milliseconds by 1000)"

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Trace(Availability):
    """An availability model that reads the intervals in which each client is ready from a user's table.

    Attributes:
        path: path of the table.
        client: name of the column of device names.
        start: name of the column of the seconds at which intervals begin, or of step numbers if `step_s` is set.
        end: name of the column of the seconds at which intervals end; not read if `step_s` is set.
        step_s: seconds of a step, if each row stands for one step; None if the table has intervals.
        state: name of the column that is 1 in rows where the client is ready; None if it is ready in all rows.
        period_s: seconds after which the table repeats; None for the end of its last interval.
        period: name of the column of periods in seconds, one per client; None if all clients have the period
            `period_s`.
        assign: device of a client: "by_id" gives client k the k-th device, "drawn" a random one.
        idle: whether devices that are never ready may be drawn; it has no effect with assign=by_id.
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
        trace_table.check_trace_path_option(self.path)
        for column_option in ("client", "start", "end"):
            ranges.text(column_option, getattr(self, column_option))
        for column_option in ("state", "period"):
            ranges.text(column_option, getattr(self, column_option), allow_null=True)
        ranges.number("step_s", self.step_s, "[1e-3, 1e9]", allow_null=True)
        ranges.number("period_s", self.period_s, "[1e-3, 1e9]", allow_null=True)
        if self.period is not None and self.period_s is not None:
            raise OptionError(
                f"period={self.period} (a column) and period_s={self.period_s} (one number for all clients) exclude "
                "each other: set one of the two to null"
            )
        end_column = {} if self.step_s is not None else {"end": self.end}
        columns = {"client": self.client, "start": self.start, **end_column, "state": self.state, "period": self.period}
        ranges.check_distinct_columns(columns)
        ranges.choice("assign", self.assign, "by_id", "drawn")
        ranges.flag("idle", self.idle)

    def notices(self, choice: str) -> Sequence[str]:
        """Return a start-up notice if `idle` has no effect; `choice` is the component's name in its group."""
        if self.idle or self.assign == "drawn":
            return ()
        reason_text = "client k is the k-th device, even if it is never ready"
        remedy_text = "Set availability.assign=drawn to draw among the other devices"
        return (f"availability.idle=false has no effect with availability.assign=by_id: {reason_text}. {remedy_text}",)

    def schedule(self, draws: Draws) -> ReadySchedule:
        """Return the intervals of the table in which each client is ready; `draws` assigns devices with assign=drawn.

        Raises:
            DataError: the table has an error.
        """
        column_by_option = {option: getattr(self, option) for option in ("client", "start", "end", "state", "period")}
        table = trace_table.read_table("availability", self.path, column_by_option)
        row_order, rows_per_device, (n_clients_without_gap, id_gap_text) = trace_table.sort_by_name(table, self.client)
        start_s, end_s = (interval_bounds_s[row_order] for interval_bounds_s in self._read_intervals(table))
        device_of_row = np.repeat(np.arange(len(rows_per_device)), rows_per_device)
        self._check_interval_order(row_order, device_of_row, start_s, end_s)
        periods_s = self._read_periods(table, row_order, device_of_row, end_s)
        is_ready = np.ones(len(row_order), dtype=bool)
        if self.state is not None:
            is_ready = trace_table.read_boolean_column(table, self.state)[row_order]
        if not is_ready.any():
            raise DataError(
                f"availability.path: {self.path} has no client that is ever available: check start and end of intervals"
            )
        start_s, end_s, device_of_row = _merge_intervals(start_s[is_ready], end_s[is_ready], device_of_row[is_ready])
        stop_interval = np.cumsum(np.bincount(device_of_row, minlength=len(rows_per_device)))
        first_interval = np.concatenate([[0], stop_interval[:-1]])
        if self.assign == "by_id" and draws.n_clients > n_clients_without_gap:
            raise DataError(f"{id_gap_text}, or set availability.assign=drawn, which draws one for each client")
        client_device = self._assign_devices(first_interval, stop_interval, draws)
        client_interval_bounds = first_interval[client_device], stop_interval[client_device]
        return ReadySchedule(start_s, end_s, *client_interval_bounds, periods_s[client_device])

    def _read_intervals(self, table: "Frame") -> tuple[Values, Values]:
        """Return the seconds at which the interval of each row of `table` begins and ends, [rows] each.

        Times that count from another origin, as UNIX time does, are shifted to second 0 of the virtual clock.

        Raises:
            DataError: a step is not an integer, or an interval ends after `MAX_INTERVAL_END_S`.
        """
        start_s = trace_table.read_numbers(table, self.start, TABLE_SECONDS_RANGE, SECONDS_UNIT_TEXT)
        if self.step_s is None:
            end_s = trace_table.read_numbers(table, self.end, TABLE_SECONDS_RANGE, SECONDS_UNIT_TEXT)
        else:
            allowed_text = "expected an integer number of steps of availability.step_s seconds"
            is_fractional_start = start_s != np.floor(start_s)
            table.check_cells(self.start, is_fractional_start, lambda row: f"holds {start_s[row]:g}: {allowed_text}")
            if self.end in table.names:
                _warn_on_rank_0(
                    f"availability.step_s={self.step_s:g}: each row of {self.path} lasts one step, and its column "
                    f"{self.end!r} is not read (availability.step_s=null reads it)"
                )
            start_s, end_s = start_s * self.step_s, (start_s + 1) * self.step_s
        time_origin_s = float(start_s.min()) if start_s.min() > MIN_UNIX_S else 0.0
        if time_origin_s:
            _warn_on_rank_0(
                f"availability.path: the first interval of {self.path} begins at {time_origin_s:.10g} seconds, as in "
                f"UNIX time: the virtual clock starts there, and all intervals begin {time_origin_s:.10g} seconds "
                "earlier"
            )
        start_s, end_s = start_s - time_origin_s, end_s - time_origin_s
        if (is_end_too_late := end_s > MAX_INTERVAL_END_S).any():
            row = int(is_end_too_late.argmax())
            problem_text = f"ends {end_s[row]:g} seconds after the table begins, but at most 1e9 are allowed"
            option_name = "end" if self.step_s is None else "start"
            raise self._make_row_error(option_name, row, f"{problem_text}: count all times from the same start")
        return start_s, end_s

    def _make_row_error(self, option_name: str, row: int, problem_text: str) -> DataError:
        return DataError(f"availability.{option_name}: {self.path}: row {row} {problem_text}")

    def _check_interval_order(self, row_order: Ids, device_of_row: Ids, start_s: Values, end_s: Values) -> None:
        """Raise `DataError` if an interval is empty, or begins before the previous one of its device ends.

        `row_order` holds the table's rows sorted by device; `device_of_row`, `start_s` and `end_s` follow this order,
        [rows].
        """
        if (is_short_interval := end_s - start_s < MIN_INTERVAL_S).any():
            row_position = int(np.flatnonzero(is_short_interval)[row_order[is_short_interval].argmin()])
            problem_text = f"begins at {start_s[row_position]:g} and ends at {end_s[row_position]:g}"
            allowed_text = "an interval must be at least a microsecond long: correct the row"
            raise self._make_row_error("start", int(row_order[row_position]), f"{problem_text}: {allowed_text}")
        if (overlaps_previous := (device_of_row[1:] == device_of_row[:-1]) & (start_s[1:] < end_s[:-1])).any():
            row_position = int(overlaps_previous.argmax())
            problem_text = (
                f"begins at {start_s[row_position + 1]:g}, before row {row_order[row_position]} of the same client "
                f"ends at {end_s[row_position]:g}"
            )
            allowed_text = "the intervals of a client must be in order and apart: sort or merge them"
            raise self._make_row_error("start", int(row_order[row_position + 1]), f"{problem_text}: {allowed_text}")

    def _read_periods(self, table: "Frame", row_order: Ids, device_of_row: Ids, end_s: Values) -> Values:
        """Return the period of each device's intervals in seconds, [devices].

        Raises `DataError` if rows of a device have different periods, or an interval ends after its period. The
        arguments are as in `_check_interval_order`.
        """
        option_name = "period_s" if self.period is None else "period"
        periods_s = (
            np.full(len(row_order), end_s.max() if self.period_s is None else float(self.period_s))
            if self.period is None
            else trace_table.read_numbers(table, self.period, "[1e-3, 1e9]", "seconds")[row_order]
        )
        if (has_other_period := (device_of_row[1:] == device_of_row[:-1]) & (periods_s[1:] != periods_s[:-1])).any():
            row_position = int(has_other_period.argmax())
            problem_text = (
                f"has a period of {periods_s[row_position + 1]:g} seconds, and row {row_order[row_position]} of the "
                f"same client {periods_s[row_position]:g}: use one number"
            )
            raise self._make_row_error("period", int(row_order[row_position + 1]), problem_text)
        if (ends_after_period := end_s > periods_s).any():
            row_position = int(ends_after_period.argmax())
            problem_text = f"ends at {end_s[row_position]:g}, after its period of {periods_s[row_position]:g} seconds"
            raise self._make_row_error(option_name, int(row_order[row_position]), f"{problem_text}: correct one")
        return np.asarray(periods_s[np.flatnonzero(np.diff(device_of_row, prepend=-1))])

    def _assign_devices(self, first_interval: Ids, stop_interval: Ids, draws: Draws) -> Ids:
        """Return each client's device, its position in the order of device names, [n_clients].

        `first_interval` and `stop_interval` bound each device's intervals, [devices]. Raises `DataError` if there are
        fewer devices than clients with assign=by_id.
        """
        device_positions = np.flatnonzero((stop_interval > first_interval) | self.idle)
        if self.assign == "drawn":
            drawn_positions = (len(device_positions) * draws.uniform("available_device")).astype(np.int64)
            return np.asarray(device_positions[drawn_positions])
        if len(first_interval) < draws.n_clients:
            raise DataError(
                f"availability.path: {self.path} has {len(first_interval)} devices, too few for {draws.n_clients} "
                "clients: set availability.assign=drawn, which draws a device for each client"
            )
        return np.arange(draws.n_clients)


def _warn_on_rank_0(warning_text: str) -> None:
    if rank_of_process() == 0:
        log.warning(warning_text)


def _merge_intervals(start_s: Values, end_s: Values, interval_device: Ids) -> tuple[Values, Values, Ids]:
    """Return starts, ends and devices of ordered intervals; touching intervals of a device become one, [intervals]."""
    starts_new_interval = (interval_device[1:] != interval_device[:-1]) | (start_s[1:] > end_s[:-1])
    is_interval_start = np.concatenate([[True], starts_new_interval])
    is_interval_end = np.concatenate([starts_new_interval, [True]])
    return start_s[is_interval_start], end_s[is_interval_end], interval_device[is_interval_start]
