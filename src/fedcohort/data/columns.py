"""Columns of a user's table, Parquet or CSV; an unusable cell raises an error with file, row and reason."""

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
from fedcohort.paths import expand_home
from fedcohort.types import Ids, Values

KINDS = (".parquet", ".csv")
MAX_NAMES = 12  # column names in a message
MAX_CELL = 40  # characters of a cell in a message


def check_path(path: object) -> None:
    """Raise `OptionError` if the option `path` is not the path of a table; the file need not exist."""
    ranges.text("path", path)
    if Path(str(path)).suffix not in KINDS:
        raise ranges.range_error("path", "a file that ends in .parquet or .csv", path)


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        group: config group whose options name the columns, for messages.
        path: the file as the user typed it.
        arrays: pyarrow arrays by column name.
    """

    group: str
    path: str
    arrays: Mapping[str, Any]

    @classmethod
    def read(cls, group: str, path: str) -> "Columns":
        """Read the file. Raises `DataError` if it is not a table with at least one row."""
        import pyarrow.csv  # only where a run reads a table

        file = expand_home(path)
        if not file.is_file():
            raise DataError(
                f"{group}.path={path}: there is no such file (from {Path.cwd()}); fedcohort contains none, and "
                f"the columns that your table needs are listed in the yaml files of configs/{group}/"
            )
        try:
            table = pyarrow.csv.read_csv(file) if file.suffix == ".csv" else parquet.open_file(file).read()
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{group}.path: {path} can't be read as a {file.suffix} file: {reason}") from error
        names = [str(name) for name in table.column_names]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise DataError(f"{group}.path: {path} has {names.count(repeated[0])} columns called {repeated[0]!r}")
        if not table.num_rows:
            raise DataError(f"{group}.path: {path} has no rows")
        return cls(group, path, dict(zip(names, table.columns, strict=True)))

    def sort(self, option: str, column: str) -> tuple[Ids, Int64[np.ndarray, "_devices"]]:
        """Sort the rows by the names in a column, integers by value and texts alphabetically.

        Returns:
            The row numbers in that order (rows with the same name keep their order), and the number of rows per name.

        Raises:
            DataError: a cell is neither an integer nor a text; the message shows the first such cell.
        """
        cells = self._take(option, column)
        if not (str(cells.type).startswith(("int", "uint")) and not cells.null_count):
            for row, name in enumerate(cells.to_pylist()):
                where = f"{self.group}.{option}: {self.path}: row {row}"
                if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
                    raise DataError(f"{where} holds {show_cell(name)}, but a name must be an integer or a text")
                if isinstance(name, str) and name != name.strip():
                    raise DataError(f"{where} has spaces around its name, {show_cell(name)}: remove them")
        _, name_ids, counts = np.unique(np.array(cells.to_pylist()), return_inverse=True, return_counts=True)
        return np.argsort(name_ids, kind="stable").astype(np.int64), counts.astype(np.int64)

    def find_gap(self, option: str, column: str) -> tuple[float, str]:
        """Find the first missing number in a column of client numbers that start at 0 or 1.

        After a missing number, the k-th client of the table is not client k. Texts, and integers that start elsewhere,
        are names and not client numbers.

        Returns:
            The count of clients before the missing one, inf if none is missing; and a message about it.
        """
        cells = self._take(option, column)
        if not str(cells.type).startswith(("int", "uint")):
            return math.inf, ""
        names = np.unique(np.array(cells.to_pylist()))
        gaps = np.flatnonzero(np.diff(names) > 1)
        if names[0] not in (0, 1) or not len(gaps):
            return math.inf, ""
        first, last, following = (int(names[i]) for i in (0, gaps[0], gaps[0] + 1))
        return float(gaps[0] + 1), (
            f"{self.group}.{option}: {self.path} has clients {first} to {last}, then {following}: add client {last + 1}"
        )

    def numbers(self, option: str, column: str, interval: str, unit: str) -> Values:
        """Return the cells as numbers inside `interval`, float64 [rows].

        Args:
            option: option that names the column, for messages.
            column: name of the column.
            interval: closed interval of allowed numbers, as in "[0, 1e9]".
            unit: unit of the numbers, for messages.

        Raises:
            DataError: a cell is not a number, or outside the interval; the message shows the first such cell.
        """
        cells = self._take(option, column)
        values = np.empty(len(cells))
        for row, cell in enumerate(cells.to_pylist()):
            try:
                is_invalid = isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell)  # float("1_0") is 10
                values[row] = math.nan if is_invalid else float(cell)
            except (TypeError, ValueError, OverflowError):
                values[row] = math.nan
        low, high = ranges.interval_bounds(interval)
        wrong = ~np.isfinite(values) | (values < low) | (values > high)
        if wrong.any():
            row = int(wrong.argmax())
            cell, where = cells[row].as_py(), f"{self.group}.{option}: {self.path}: column {column!r}, row {row}"
            if not np.isfinite(values[row]):
                raise DataError(
                    f"{where} {'is empty' if cell is None else f'holds {show_cell(cell)}'}: expected a number"
                )
            raise DataError(f"{where} holds {show_cell(cell)}, which must be in {interval}, {unit}")
        return values

    def flags(self, option: str, column: str) -> Bool[np.ndarray, "_rows"]:
        """Return whether each cell is 1 or true; raise `DataError` for the first that is not 1, 0, -1 or a bool."""
        cells = self._take(option, column).to_pylist()
        for row, cell in enumerate(cells):
            if not isinstance(cell, int) or abs(cell) > 1:
                where = f"{self.group}.{option}: {self.path}: column {column!r}, row {row}"
                raise DataError(f"{where} holds {show_cell(cell)}: expected 1, 0, or -1 for an unknown state")
        return np.array([cell == 1 for cell in cells], dtype=bool)

    def _take(self, option: str, column: str) -> Any:  # noqa: ANN401  pyarrow has no types
        if column not in self.arrays:
            names = ", ".join([*list(self.arrays)[:MAX_NAMES], *(["..."] if len(self.arrays) > MAX_NAMES else [])])
            raise DataError(f"{self.group}.{option}: {self.path} has no column {column!r}; it has {names}")
        return self.arrays[column]


def show_cell(cell: object) -> str:
    """Return the text of a cell for a message, of at most `MAX_CELL` characters."""
    return repr(cell)[:MAX_CELL]
