"""Encode categories and dates as columns of numbers.

    category   one column for each level of the training rows, 1 where the row has it and 0 otherwise (one-hot)
    date       days since 1970-01-01, with fractions for times

A level that no training row has is 0 in all columns of its category, and is counted in a note. An empty cell is missing
in all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import cells
from fedcohort.dataset.problems import Problems
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.columns import Inputs
from fedcohort.errors import DataError

MAX_LEVELS = 1000  # of a category: a column of more is an id


def find_levels(train: Frame, inputs: Inputs) -> dict[str, list[str]]:
    """Return the sorted levels of each category over the training rows. Raises `DataError` for too many or one."""
    levels = {}
    for name in inputs.categories:
        values = _spell(train, name)
        levels[name] = sorted(value for value in pc.unique(values).to_pylist() if value)
        n = len(levels[name])
        if not 2 <= n <= MAX_LEVELS:
            raise DataError(
                f"dataset.categories: {train.where}: column {name!r} has {n:,} different values, and 2 to "
                f"{MAX_LEVELS:,} can be encoded"
            )
    return levels


def encode(
    frames: Sequence[Frame], inputs: Inputs, levels: Mapping[str, Sequence[str]], gaps: bool
) -> tuple[list[Frame], list[str], list[str]]:
    """Add the columns of numbers that categories and dates become.

    Args:
        frames: the tables, the training rows first.
        inputs: the columns that are inputs.
        levels: levels of each category, from `find_levels`.
        gaps: whether empty cells become missing numbers; otherwise they are errors.

    Returns:
        The tables, the names of all columns of numbers that a sample consists of, and notes.

    Raises:
        DataError: with a problem for each column that has an empty cell.
    """
    problems, encoded, notes = Problems(), [], []
    for frame in frames:
        derived: dict[str, pa.ChunkedArray] = {}
        for name in (*inputs.categories, *inputs.dates):
            with problems.collect():
                column = frame.column(name) if gaps else frame.require_full(name)
                if name in inputs.dates:
                    derived[name] = cells.days(column)
                    continue
                values = _spell(frame, name)
                for level in levels[name]:
                    derived[f"{name}={level}"] = pc.equal(values, level).cast(pa.float32())
                known_level = pc.is_in(values, value_set=pa.array(levels[name]))
                unknown = int(np.count_nonzero(~np.asarray(known_level)) - values.null_count)
                if unknown:
                    notes.append(
                        f"{unknown:,} cells of {name} in {Path(frame.where).name} have values that no training row has"
                    )
        encoded.append(replace(frame, derived=derived))
    problems.raise_all()
    columns = [f"{name}={level}" for name in inputs.categories for level in levels[name]]
    return encoded, [*inputs.numbers, *columns, *inputs.dates], notes


def _spell(frame: Frame, name: str) -> pa.ChunkedArray:
    """Return the column's values as texts without spaces around them; null where a cell is empty."""
    column = frame.column(name)
    if not (cells.is_text(column.type) or cells.is_number(column.type)):
        raise frame.error(name, f": column {name!r} must hold texts or numbers as a category, it holds {column.type}")
    values = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pa.chunked_array([pa.array(cells.empty(column))]), pa.scalar(None, pa.string()), values)
