"""Devices that were measured by you: a table of seconds of training and of link speeds, a row for each device.

    t_i ~ max(mu_i / 10, N(mu_i, c_i mu_i))   seconds of training on a sample
    v_i ~ max(u_i / 10, N(u_i, d_i u_i))      bytes a second, down and up
    T_i = bytes / v_down + E n_i t_i + bytes / v_up

    python train.py device=trace device.path=devices.csv device.unit=kbit/s

Client k is the k-th device in the order of names (numbers by size, texts by letters), or with `draw` one that is drawn
for it, once a run. Speeds are drawn for each client and round where the table has columns of deviations.

Departures from the paper: none (of no paper). `benchmarks/fedscale_devices.py` makes such a table of FedScale's file.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fedcohort import ranges
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.device.measured import SLOWEST, Link, Speeds
from fedcohort.errors import DataError
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

BYTES = {"KiB/s": 1024.0, "kB/s": 1000.0, "kbit/s": 125.0, "bytes/s": 1.0}
KINDS = (".parquet", ".csv")
SHOWN = 12  # columns that a line names
LONGEST = 40  # characters of a cell that a line shows
CLIENT = "client"  # the option that names the column of names
MEANS = ("seconds", "down", "up")
DEVIATIONS = ("seconds_cv", "down_cv", "up_cv")


@dataclass(frozen=True)
class Trace(Device):
    """The device model, with its options.

    Attributes:
        path: the table.
        client: column of names.
        seconds, down, up: columns of means.
        batch: samples that `seconds` are for, None for one.
        unit: of both links.
        seconds_cv, down_cv, up_cv: columns of deviations between rounds, in means; None for no deviation.
        draw: whether rows are drawn for clients.
    """

    path: str
    client: str
    seconds: str
    batch: int | None
    down: str
    up: str
    unit: str
    seconds_cv: str | None
    down_cv: str | None
    up_cv: str | None
    draw: bool

    def __post_init__(self) -> None:
        ranges.text("path", self.path)
        if Path(self.path).suffix not in KINDS:
            raise ranges.refuse("path", "a file that ends in .parquet or .csv", self.path)
        for option in (CLIENT, *MEANS):
            ranges.text(option, getattr(self, option))
        for option in DEVIATIONS:
            ranges.text(option, getattr(self, option), optional=True)
        ranges.integer("batch", self.batch, "[1, inf)", optional=True)
        ranges.choice("unit", self.unit, *BYTES)
        ranges.flag("draw", self.draw)

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Mean seconds over the rounds. Raises `DataError` for what is wrong with the table, at the start."""
        return self._speeds(clients, draws).expect(work)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Seconds in the round of `draws`."""
        return self._speeds(clients, draws).sample(clients, work, draws)

    def _speeds(self, clients: Ids, draws: Draws) -> Speeds:
        devices, rows = self._devices, self._rows(clients, draws)
        mean, down, up = (devices[option][rows] for option in MEANS)
        spread, down_cv, up_cv = (devices[option][rows] for option in DEVIATIONS)
        return Speeds(mean, spread * mean, SLOWEST * mean, Link(down, down_cv * down), Link(up, up_cv * up))

    def _rows(self, clients: Ids, draws: Draws) -> Ids:
        """The row of each client, in the order of names."""
        n_rows = len(self._devices["seconds"])
        if self.draw:
            rows: Ids = (n_rows * draws.once().uniform("device")[clients]).astype(np.int64)
            return rows
        if n_rows < draws.n_clients:
            raise DataError(
                f"device.path: {self.path} has {n_rows} rows, too few for {draws.n_clients} clients: device.draw=true "
                "draws one for each"
            )
        return clients

    @cached_property
    def _devices(self) -> Mapping[str, Values]:
        """By option, a number of each device in the order of names; seconds a sample, bytes a second, deviations."""
        table = _read(self.path)
        order = _sort(self._take(table, CLIENT, self.client), self.path)
        found = {}
        for option in (*MEANS, *DEVIATIONS):
            column = getattr(self, option)
            found[option] = np.zeros(len(order))
            if column is not None:
                cells = self._take(table, option, column)
                where = f"device.{option}: {self.path}: column {column!r}"
                found[option] = _numbers(cells, where, positive=option in MEANS)[order]
        found["seconds"] = found["seconds"] / (self.batch or 1)
        return found | {option: found[option] * BYTES[self.unit] for option in ("down", "up")}

    def _take(self, table: Mapping[str, Sequence[object]], option: str, column: str) -> Sequence[object]:
        if column not in table:
            names = ", ".join([*list(table)[:SHOWN], *(["..."] if len(table) > SHOWN else [])])
            raise DataError(f"device.{option}: {self.path} has no column {column!r}; it has {names}")
        return table[column]


def _read(path: str) -> Mapping[str, Sequence[object]]:
    """The table's columns by name, None for empty cells. Raises `DataError` where there is no such table."""
    import pyarrow.csv  # only where a run reads a table
    import pyarrow.parquet

    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"device.path={path}: there is no such file (from {Path.cwd()})")
    try:
        table = pyarrow.csv.read_csv(file) if file.suffix == ".csv" else pyarrow.parquet.ParquetFile(file).read()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"device.path: {path} can't be read as a {file.suffix} file: {reason}") from error
    names = [str(name) for name in table.column_names]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"device.path: {path} has {len(twice)} columns called {twice[0]!r}")
    if not table.num_rows:
        raise DataError(f"device.path: {path} has no rows")
    return {name: column.to_pylist() for name, column in zip(names, table.columns, strict=True)}


def _sort(names: Sequence[object], path: str) -> Ids:
    """The rows in the order of names. Raises `DataError` for a name that is none, or that is there twice."""
    rows: dict[object, int] = {}
    for row, name in enumerate(names):
        where = f"device.{CLIENT}: {path}: row {row}"
        if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
            raise DataError(f"{where} has no name, an integer or a text: {_show(name)}")
        if name in rows:
            raise DataError(f"{where} has the name of row {rows[name]}, {_show(name)}")
        rows[name] = row
    return np.argsort(np.array(names), kind="stable").astype(np.int64)


def _numbers(cells: Sequence[object], where: str, *, positive: bool) -> Values:
    """The cells as numbers, float64 [rows]. Raises `DataError` for the first that is none, or out of range."""
    values = np.empty(len(cells))
    for row, cell in enumerate(cells):
        try:
            values[row] = math.nan if isinstance(cell, bool) else float(cell)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            values[row] = math.nan
        if not np.isfinite(values[row]):
            found = "is empty" if cell is None else f"holds {_show(cell)}"
            raise DataError(f"{where}, row {row} {found}: a number is meant")
        if values[row] < 0 or (positive and values[row] == 0):
            least = "more than" if positive else "at least"
            raise DataError(f"{where}, row {row} holds {_show(cell)}, which must be {least} 0")
    return values


def _show(cell: object) -> str:
    return repr(cell)[:LONGEST]
