"""Choose the columns of a user's table that are inputs, and encode categories and dates as columns of numbers.

    category   one column for each level of the training rows, 1 where the row has it and 0 otherwise (one-hot)
    date       days since 1970-01-01, with fractions for times

A level that no training row has is 0 in all columns of its category, and is counted in a note. An empty cell is missing
in all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import Problems
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.column_kinds import MAX_AUTO_LEVELS, count_levels, kind_of, recognise_text_numbers
from fedcohort.errors import DataError

AUTO = "auto"
MAX_LEVELS = 1000  # of a category: a column of more is an id
MAX_LISTED_COLUMNS = 12  # columns that a message names
EXAMPLE_LENGTH = 20  # characters of a cell in a message


@dataclass(frozen=True)
class Inputs:
    """The columns that are inputs.

    Attributes:
        numbers: columns of numbers and booleans.
        categories: columns that are encoded by one number for each level.
        dates: columns that are encoded as days since 1970.
        lists: columns of lists or images; a sample consists of these only where there are any.
    """

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all input columns, numbers first."""
        return (*self.numbers, *self.categories, *self.dates, *self.lists)


def choose_inputs(
    frame: Frame, excluded: Iterable[str], categories: Sequence[str] | str, dates: Sequence[str] | str
) -> Inputs:
    """Choose the columns of scalars that are inputs.

    Args:
        frame: the training table.
        excluded: the columns of labels, clients and series, and those that the user leaves out.
        categories: columns to encode by their levels, or "auto" for all texts of few levels.
        dates: columns to encode as numbers, or "auto" for all dates.

    Raises:
        DataError: if no column is an input, or a named column is none of its kind.
    """
    kind_by_column = {name: kind_of(frame, name) for name in frame.names if name not in set(excluded)}
    if dates == AUTO:
        dates = [name for name, dtype in kind_by_column.items() if dtype == "date"]
    if categories == AUTO:
        texts = [name for name, dtype in kind_by_column.items() if dtype == "text"]
        categories = [name for name in texts if 2 <= count_levels(frame, name) <= MAX_AUTO_LEVELS]
    encoded = {*categories, *dates}
    numeric = [name for name, dtype in kind_by_column.items() if dtype in ("number", "boolean") and name not in encoded]
    for name in dates:
        column = frame.column(name)
        if not arrow_columns.is_date(column.type):
            values = pc.drop_null(column.slice(0, 99)).to_pylist()
            example = f" (as {str(values[0])[:EXAMPLE_LENGTH]!r})" if values else ""
            what = f"dataset.dates: {frame.where}"
            raise DataError(f"{what}: column {name!r} must hold dates as 2024-12-31, it holds {column.type}{example}")
    inputs = Inputs(tuple(numeric), tuple(categories), tuple(dates))
    if not inputs.names:
        raise _no_inputs(frame, kind_by_column)
    return inputs


def _no_inputs(frame: Frame, kind_by_column: Mapping[str, str]) -> DataError:
    """Return the error for a table without columns of numbers, with what can be done about its other columns."""
    list_columns = [name for name, dtype in kind_by_column.items() if dtype in ("lists", "images")]
    texts = [name for name, dtype in kind_by_column.items() if dtype == "text"]
    advice_texts = [
        f"{name!r} holds {text}: {advice}" for name in texts for text, advice in recognise_text_numbers(frame, name)
    ]
    if list_columns:
        advice_texts.append(f"dataset.features=[{','.join(list_columns)}] takes the columns of lists or images")
    if any(2 <= count_levels(frame, name) <= MAX_AUTO_LEVELS for name in texts):
        advice_texts.append("dataset.categories=auto encodes texts of few values")
    if not advice_texts:
        advice_texts.append("turn texts into numbers, or columns of lists of numbers, and write them as Parquet")
    columns = ", ".join(f"{name} ({dtype})" for name, dtype in list(kind_by_column.items())[:MAX_LISTED_COLUMNS])
    text = f"dataset.features: {frame.where} has no column of numbers besides the label"
    return DataError(f"{text}. Its other columns: {columns or 'none'}; {'; '.join(advice_texts)}")


def find_levels(train: Frame, inputs: Inputs) -> dict[str, list[str]]:
    """Return the sorted levels of each category over the training rows. Raises `DataError` for too many or one."""
    levels = {}
    for name in inputs.categories:
        levels[name] = sorted(value for value in pc.unique(_read_category(train, name)).to_pylist() if value)
        if not 2 <= (n := len(levels[name])) <= MAX_LEVELS:
            what = f"dataset.categories: {train.where}: column {name!r} has {n:,} different values"
            raise DataError(f"{what}, and 2 to {MAX_LEVELS:,} can be encoded")
    return levels


def encode(
    frames: Sequence[Frame], inputs: Inputs, levels: Mapping[str, Sequence[str]], gaps: bool
) -> tuple[list[Frame], list[str], list[str]]:
    """Add the columns of numbers that encode categories and dates.

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
                    derived[name] = arrow_columns.days(column)
                    continue
                values = _read_category(frame, name)
                for level in levels[name]:
                    derived[f"{name}={level}"] = pc.equal(values, level).cast(pa.float32())
                is_known = pc.is_in(values, value_set=pa.array(levels[name]))
                if n_unknown := int(np.count_nonzero(~np.asarray(is_known)) - values.null_count):
                    file_name = Path(frame.where).name
                    notes.append(f"{n_unknown:,} cells of {name} in {file_name} have values that no training row has")
        encoded.append(replace(frame, derived=derived))
    problems.raise_all()
    columns = [f"{name}={level}" for name in inputs.categories for level in levels[name]]
    return encoded, [*inputs.numbers, *columns, *inputs.dates], notes


def _read_category(frame: Frame, name: str) -> pa.ChunkedArray:
    """Return the column's values as texts without spaces around them; null for empty cells."""
    column = frame.column(name)
    if not (arrow_columns.is_text(column.type) or arrow_columns.is_number(column.type)):
        problem_text = f": column {name!r} must hold texts or numbers as a category, it holds {column.type}"
        raise frame.column_error(name, problem_text)
    values = pc.utf8_trim_whitespace(column.cast(pa.string()))
    empty = pa.chunked_array([pa.array(arrow_columns.empty_cells(column))])
    return pc.if_else(empty, pa.scalar(None, pa.string()), values)
