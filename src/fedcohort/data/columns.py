"""Columns of a table of the user's, Parquet or CSV: a cell that can't be used is refused with file, row and reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from fedcohort import ranges
from fedcohort.errors import DataError
from fedcohort.host import parquet
from fedcohort.types import Ids, Values

KINDS = (".parquet", ".csv")
SHOWN = 12  # columns that a line names
LONGEST = 40  # characters of a cell that a line shows


def check_path(path: object) -> None:
    """Raise `OptionError` where the option `path` isn't one of a table; the file may not be there yet."""
    ranges.text("path", path)
    if Path(str(path)).suffix not in KINDS:
        raise ranges.refuse("path", "a file that ends in .parquet or .csv", path)


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        group: the config group whose options name them, for messages.
        path: the file, as it was typed.
        arrays: pyarrow's, by name.
    """

    group: str
    path: str
    arrays: Mapping[str, Any]

    @classmethod
    def read(cls, group: str, path: str) -> "Columns":
        """Read the file. Raises `DataError` where it is no table with rows."""
        import pyarrow.csv  # only where a run reads a table

        file = Path(path).expanduser()
        if not file.is_file():
            raise DataError(
                f"{group}.path={path}: there is no such file (from {Path.cwd()}); no table comes along with fedcohort, "
                f"and what yours must hold stands in the word's file in configs/{group}/"
            )
        try:
            table = pyarrow.csv.read_csv(file) if file.suffix == ".csv" else parquet.open_file(file).read()
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{group}.path: {path} can't be read as a {file.suffix} file: {reason}") from error
        names = [str(name) for name in table.column_names]
        if twice := [name for name in names if names.count(name) > 1]:
            raise DataError(f"{group}.path: {path} has {len(twice)} columns called {twice[0]!r}")
        if not table.num_rows:
            raise DataError(f"{group}.path: {path} has no rows")
        return cls(group, path, dict(zip(names, table.columns, strict=True)))

    def sort(self, option: str, column: str) -> tuple[Ids, Int64[np.ndarray, "_devices"]]:
        """Sort the rows by the names in a column, numbers by size and texts by letters.

        Returns:
            the rows in that order, those of one name as they stand in the table; and how many each name has.

        Raises `DataError` for the first name that is none.
        """
        cells = self._take(option, column)
        if not (str(cells.type).startswith(("int", "uint")) and not cells.null_count):
            for row, name in enumerate(cells.to_pylist()):
                where = f"{self.group}.{option}: {self.path}: row {row}"
                if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
                    raise DataError(f"{where} has no name, an integer or a text: {show(name)}")
                if isinstance(name, str) and name != name.strip():
                    raise DataError(f"{where} has spaces around its name, {show(name)}: remove them")
        _, device, counts = np.unique(np.array(cells.to_pylist()), return_inverse=True, return_counts=True)
        return np.argsort(device, kind="stable").astype(np.int64), counts.astype(np.int64)

    def find_gap(self, option: str, column: str) -> tuple[float, str]:
        """Find the first name that is left out of those that count from 0 or 1: who comes after it isn't who it seems.

        Texts, and numbers that begin elsewhere, are no numbering.

        Returns:
            how many come before it, infinite where none is left out; and what to say of it.
        """
        cells = self._take(option, column)
        if not str(cells.type).startswith(("int", "uint")):
            return math.inf, ""
        names = np.unique(np.array(cells.to_pylist()))
        gaps = np.flatnonzero(np.diff(names) > 1)
        if names[0] not in (0, 1) or not len(gaps):
            return math.inf, ""
        first, last, following = (int(names[i]) for i in (0, gaps[0], gaps[0] + 1))
        there = f"{first} to {last} are there, and then {following}"
        return float(gaps[0] + 1), f"{self.group}.{option}: {self.path} has no client {last + 1}: {there}; add it"

    def numbers(self, option: str, column: str, interval: str, unit: str) -> Values:
        """Return the cells as numbers inside `interval`, float64 [rows].

        Args:
            option: that names the column, for messages.
            column: its name.
            interval: allowed numbers with both ends, as "[0, 1e9]".
            unit: what the numbers count, for messages.

        Raises:
            DataError: for the first cell that is no number, or outside the interval.
        """
        cells = self._take(option, column)
        values = np.empty(len(cells))
        for row, cell in enumerate(cells.to_pylist()):
            try:
                odd = isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell)  # float("1_0") is 10
                values[row] = math.nan if odd else float(cell)
            except (TypeError, ValueError, OverflowError):
                values[row] = math.nan
        low, high = ranges.bounds(interval)
        wrong = ~np.isfinite(values) | (values < low) | (values > high)
        if wrong.any():
            row = int(wrong.argmax())
            cell, where = cells[row].as_py(), f"{self.group}.{option}: {self.path}: column {column!r}, row {row}"
            if not np.isfinite(values[row]):
                raise DataError(f"{where} {'is empty' if cell is None else f'holds {show(cell)}'}: a number is meant")
            raise DataError(f"{where} holds {show(cell)}, which must be in {interval}, {unit}")
        return values

    def flags(self, option: str, column: str) -> Bool[np.ndarray, "_rows"]:
        """Return whether each cell is 1 or true. Raises `DataError` for the first that isn't 1, 0, -1 or a bool."""
        cells = self._take(option, column).to_pylist()
        odd = next((row for row, cell in enumerate(cells) if not isinstance(cell, int) or abs(cell) > 1), None)
        if odd is not None:
            where = f"{self.group}.{option}: {self.path}: column {column!r}, row {odd}"
            raise DataError(f"{where} holds {show(cells[odd])}: 1 is meant, or 0, or -1 for an unknown state")
        return np.array([cell == 1 for cell in cells], dtype=bool)

    def _take(self, option: str, column: str) -> Any:  # noqa: ANN401  pyarrow has no types
        if column not in self.arrays:
            names = ", ".join([*list(self.arrays)[:SHOWN], *(["..."] if len(self.arrays) > SHOWN else [])])
            raise DataError(f"{self.group}.{option}: {self.path} has no column {column!r}; it has {names}")
        return self.arrays[column]


def show(cell: object) -> str:
    """Return a cell as a line shows it."""
    return repr(cell)[:LONGEST]
