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


def check_trace_path_option(path: object) -> None:
    """Raise `OptionError` if the option `path` is not the path of a CSV or Parquet file; the file need not exist."""
    ranges.text("path", path)
    if Path(str(path)).suffix not in TABLE_SUFFIXES:
        raise ranges.range_error("path", "a file that ends in .parquet or .csv", path)


def read_table(config_group: str, path: str, column_by_option: Mapping[str, str | None]) -> "Frame":
    """Read the table that an option `path` of a config group names.

    Args:
        config_group: name of the config group, such as device, for messages.
        path: path of the file that the user typed.
        column_by_option: column of the table by the option that names it; None for no column.

    Raises:
        DataError: the file is not a table with at least one row.
    """
    from fedcohort.dataset import files  # noqa: PLC0415 - pyarrow, only where a run reads a table

    if not (table_file := expand_home(path)).is_file():
        raise DataError(
            f"{config_group}.path={path}: there is no such file (from {Path.cwd()}). fedcohort contains no such table; "
            f"configs/{config_group}/*.yaml lists the columns that your table needs"
        )
    frame = files.read_table(table_file, option_name=f"{config_group}.path")
    option_by_column = {column: f"{config_group}.{option}" for option, column in column_by_option.items() if column}
    return replace(frame, origin=path, option_by_column=option_by_column)


def sort_by_name(frame: "Frame", column: str) -> tuple[Ids, Ids, tuple[float, str]]:
    """Sort the rows of a table by the names in a column: integers by value, texts alphabetically.

    Args:
        frame: the table.
        column: name of the column.

    Returns:
        The row numbers in this order, int64 [rows]; rows with the same name keep their order. The number of rows of
        each name, int64 [names]. The number of clients before the first gap in numbers that start at 0 or 1, inf
        without a gap, and the message for runs that need more clients.

    Raises:
        DataError: a cell is neither an integer nor a text, or begins or ends with spaces; the message shows the first
            such cell.
    """
    from fedcohort.dataset.clients import read_client_column  # noqa: PLC0415 - pyarrow

    name_ids, client_names = read_client_column([frame], [column], "name")
    has_edge_spaces = np.array([str(client_name) != str(client_name).strip() for client_name in client_names])[name_ids]
    frame.check_cells(
        column, has_edge_spaces, lambda row: f"has spaces around its name, {client_names[name_ids[row]]!r}: remove them"
    )
    n_clients_before_gap, number_gap_text = math.inf, ""
    client_numbers = np.array(client_names)
    has_client_numbers = client_numbers.dtype.kind == "i" and client_numbers[0] in (0, 1)
    if has_client_numbers and len(gap_positions := np.flatnonzero(np.diff(client_numbers) > 1)):
        first_number = client_numbers[0]
        last_id_before_gap, first_id_after_gap = client_numbers[gap_positions[0] + np.arange(2)].tolist()
        n_clients_before_gap, option_name = float(gap_positions[0] + 1), frame.option_by_column[column]
        clients_text = f"clients {first_number} to {last_id_before_gap} and then {first_id_after_gap}"
        number_gap_text = f"{option_name}: {frame.origin} has {clients_text}: add client {last_id_before_gap + 1}"
    return np.argsort(name_ids, kind="stable"), np.bincount(name_ids), (n_clients_before_gap, number_gap_text)


def read_numbers(frame: "Frame", column: str, allowed_interval: str, unit_name: str) -> Values:
    """Return a column of numbers inside a closed interval, float64 [rows].

    Args:
        frame: the table.
        column: name of the column.
        allowed_interval: allowed interval, such as "[0, 100]".
        unit_name: unit of the numbers, for messages.

    Raises:
        DataError: a cell is no number, or outside of the interval; the message shows the first such cell.
    """
    cell_numbers = frame.read_number_column(column)
    if str(column_type := frame.get_column_type(column)) == "bool":
        raise frame.column_error(column, f": column {column!r} must hold numbers, but holds {column_type}")
    lower_bound, upper_bound = ranges.interval_bounds(allowed_interval)
    allowed_text = f"which must be in {allowed_interval}, {unit_name}"
    is_outside_interval = (cell_numbers < lower_bound) | (cell_numbers > upper_bound)
    frame.check_cells(column, is_outside_interval, lambda row: f"holds {float(cell_numbers[row])}, {allowed_text}")
    return cell_numbers


def read_boolean_column(frame: "Frame", column: str) -> Bool[np.ndarray, "_rows"]:
    """Return whether each cell of a column is 1 or true, bool [rows].

    Args:
        frame: the table.
        column: name of the column of flags.

    Raises:
        DataError: a cell is not 1, 0, -1 or a bool; the message names its row.
    """
    cell_numbers, allowed_text = frame.read_number_column(column), "expected 1, 0, or -1 for an unknown state"
    is_boolean_cell = np.isin(cell_numbers, (-1, 0, 1))
    frame.check_cells(column, ~is_boolean_cell, lambda row: f"holds {cell_numbers[row]:g}: {allowed_text}")
    return np.asarray(cell_numbers == 1)
