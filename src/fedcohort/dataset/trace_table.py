"""A user's table of devices, or of when clients are ready: names of clients, numbers and flags, in Parquet or CSV."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.errors import DataError
from fedcohort.paths import expand_home
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from fedcohort.dataset.table import Frame

TABLE_SUFFIXES = (".parquet", ".csv")


def check_path(path: object) -> None:
    """Raise `OptionError` if the option `path` is not the path of a table; the file need not exist."""
    ranges.text("path", path)
    if Path(str(path)).suffix not in TABLE_SUFFIXES:
        raise ranges.range_error("path", "a file that ends in .parquet or .csv", path)


def read_table(group: str, path: str, columns: Mapping[str, str | None]) -> "Frame":
    """Read the table of a config group.

    Args:
        group: the group, for messages.
        path: the file as the user typed it.
        columns: the column that each option of the group names.

    Raises:
        DataError: the file is not a table with at least one row.
    """
    from fedcohort.dataset import files  # noqa: PLC0415 - pyarrow, only where a run reads a table

    if not (file := expand_home(path)).is_file():
        raise DataError(
            f"{group}.path={path}: there is no such file (from {Path.cwd()}); fedcohort contains none, and "
            f"the columns that your table needs are listed in the yaml files of configs/{group}/"
        )
    frame = files.read(file, option=f"{group}.path")
    options = {column: f"{group}.{option}" for option, column in columns.items() if column is not None}
    return replace(frame, where=path, column_options=options)


def sort_by_name(frame: "Frame", column: str) -> tuple[Ids, Ids, tuple[float, str]]:
    """Sort the rows by the names in a column, integers by value and texts alphabetically.

    Returns:
        The row numbers in that order, in which rows with the same name keep their order. The number of rows per name.
        Of clients that are numbered from 0 or 1, the count before the first missing number, inf if none is missing,
        with the message for runs that need more clients.

    Raises:
        DataError: a cell is neither an integer nor a text; the message shows the first such cell.
    """
    from fedcohort.dataset.clients import read_clients  # noqa: PLC0415 - pyarrow

    ids, names = read_clients([frame], [column], "name")
    has_spaces = np.array([isinstance(name, str) and name != name.strip() for name in names])[ids]
    frame.check_cells(column, has_spaces, lambda row: f"has spaces around its name, {names[ids[row]]!r}: remove them")
    first_missing, message = math.inf, ""
    numbers = np.array(names)
    if numbers.dtype.kind == "i" and numbers[0] in (0, 1) and len(gaps := np.flatnonzero(np.diff(numbers) > 1)):
        first, last, following = (int(numbers[i]) for i in (0, gaps[0], gaps[0] + 1))
        first_missing, where = float(gaps[0] + 1), frame.column_options[column]
        message = f"{where}: {frame.where} has clients {first} to {last}, then {following}: add client {last + 1}"
    return np.argsort(ids, kind="stable"), np.bincount(ids), (first_missing, message)


def read_numbers(frame: "Frame", column: str, interval: str, unit: str) -> Values:
    """Return the cells of a column as numbers inside the closed `interval`, float64 [rows]; unit: for messages.

    Raises `DataError` for a cell that is not a number, or outside the interval; the message shows the first such cell.
    """
    values = frame.read_numbers(column)
    if str(data_type := frame.type_of(column)) == "bool":
        raise frame.column_error(column, f": column {column!r} must hold numbers, it holds {data_type}")
    lower, upper = ranges.interval_bounds(interval)
    allowed = f"which must be in {interval}, {unit}"
    frame.check_cells(column, (values < lower) | (values > upper), lambda row: f"holds {float(values[row])}, {allowed}")
    return values


def read_flags(frame: "Frame", column: str) -> Bool[np.ndarray, "_rows"]:
    """Return whether each cell is 1 or true; raise `DataError` for the first that is not 1, 0, -1 or a bool."""
    values, allowed = frame.read_numbers(column), "expected 1, 0, or -1 for an unknown state"
    frame.check_cells(column, ~np.isin(values, (-1, 0, 1)), lambda row: f"holds {values[row]:g}: {allowed}")
    return np.asarray(values == 1)
