"""Choose the columns of a user's table that are inputs, and encode categories and dates as columns of numbers.

    category   one column for each level of the training rows, 1 where the row has it and 0 otherwise (one-hot)
    date       days since 1970-01-01, with fractions for times

A level that no training row has is 0 in all columns of its category, and is counted in a note. An empty cell is missing
in all of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import ErrorList
from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.column_kinds import (
    MAX_AUTO_LEVELS,
    count_column_levels,
    find_column_kind,
    recognise_text_numbers,
)
from fedcohort.errors import DataError

AUTO_OPTION_VALUE = "auto"
MAX_CATEGORIES = 1000  # of a category: a column of more is an id
MAX_LISTED_COLUMNS = 12  # columns that a message names
EXAMPLE_LENGTH = 20  # characters of a cell in a message


@dataclass(frozen=True)
class InputColumns:
    """The columns of a table that are inputs.

    Attributes:
        numbers: columns of numbers and booleans.
        categories: columns that are encoded by one number for each level (one-hot).
        dates: columns that are encoded as days since 1970-01-01.
        lists: columns of lists or images; if there are any, a sample consists of these only.
    """

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all input columns, numbers first."""
        return (*self.numbers, *self.categories, *self.dates, *self.lists)


def choose_input_columns(
    frame: Frame, non_inputs: Iterable[str], categories: Sequence[str] | str, dates: Sequence[str] | str
) -> InputColumns:
    """Choose the columns of numbers, categories and dates that are inputs.

    Args:
        frame: the training table.
        non_inputs: names of the columns of labels, clients and series, and of those that the user leaves out.
        categories: columns to encode by their levels, or "auto" for all texts of few levels.
        dates: columns to encode as days, or "auto" for all dates.

    Raises:
        DataError: no column is an input, or a column in `dates` is missing or does not hold dates.
    """
    kind_by_column = {name: find_column_kind(frame, name) for name in frame.names if name not in set(non_inputs)}
    if dates == AUTO_OPTION_VALUE:
        dates = [name for name, column_kind in kind_by_column.items() if column_kind == "date"]
    if categories == AUTO_OPTION_VALUE:
        text_columns = [name for name, column_kind in kind_by_column.items() if column_kind == "text"]
        categories = [name for name in text_columns if 2 <= count_column_levels(frame, name) <= MAX_AUTO_LEVELS]
    encoded_columns = {*categories, *dates}
    numeric_columns = [
        name
        for name, column_kind in kind_by_column.items()
        if column_kind in ("number", "boolean") and name not in encoded_columns
    ]
    for name in dates:
        cells = frame.column(name)
        if not arrow_columns.is_date_type(cells.type):
            example_cells = pc.drop_null(cells.slice(0, 99)).to_pylist()
            example_text = f" (as {str(example_cells[0])[:EXAMPLE_LENGTH]!r})" if example_cells else ""
            raise DataError(
                f"dataset.dates: {frame.origin}: column {name!r} must hold dates as 2024-12-31, but holds "
                f"{cells.type}{example_text}"
            )
    input_columns = InputColumns(tuple(numeric_columns), tuple(categories), tuple(dates))
    if not input_columns.names:
        raise _make_no_input_column_error(frame, kind_by_column)
    return input_columns


def _make_no_input_column_error(frame: Frame, kind_by_column: Mapping[str, str]) -> DataError:
    """Return the error for a table without columns of numbers, with remedies for its other columns.

    Args:
        frame: the training table.
        kind_by_column: kind of each column that is not a label, client or series, as `find_column_kind` names it.
    """
    list_columns = [name for name, column_kind in kind_by_column.items() if column_kind in ("lists", "images")]
    text_columns = [name for name, column_kind in kind_by_column.items() if column_kind == "text"]
    remedies = [
        f"{name!r} holds {content_description}: {remedy}"
        for name in text_columns
        for content_description, remedy in recognise_text_numbers(frame, name)
    ]
    if list_columns:
        remedies.append(f"dataset.features=[{','.join(list_columns)}] takes the columns of lists or images")
    if any(2 <= count_column_levels(frame, name) <= MAX_AUTO_LEVELS for name in text_columns):
        remedies.append("dataset.categories=auto encodes texts of few values")
    if not remedies:
        remedies.append("turn texts into numbers, or columns of lists of numbers, and write them as Parquet")
    columns_text = ", ".join(
        f"{name} ({column_kind})" for name, column_kind in list(kind_by_column.items())[:MAX_LISTED_COLUMNS]
    )
    content_description = f"dataset.features: {frame.origin} has no column of numbers besides the label"
    return DataError(f"{content_description}. Its other columns: {columns_text or 'none'}; {'; '.join(remedies)}")


def find_category_levels(train_frame: Frame, input_columns: InputColumns) -> dict[str, list[str]]:
    """Return the sorted levels of each category, the different values in the training rows.

    Args:
        train_frame: the training table.
        input_columns: the columns that are inputs, among them the categories.

    Raises:
        DataError: a category has fewer than two levels or above `MAX_CATEGORIES`, or holds neither texts nor numbers;
            two inputs have the same name.
    """
    levels_by_category = {}
    for name in input_columns.categories:
        levels_by_category[name] = sorted(
            level for level in pc.unique(_read_categories(train_frame, name)).to_pylist() if level
        )
        if not 2 <= (n_levels := len(levels_by_category[name])) <= MAX_CATEGORIES:
            raise DataError(
                f"dataset.categories: {train_frame.origin}: column {name!r} has {n_levels:,} different values, but "
                f"only 2 to {MAX_CATEGORIES:,} can be encoded: leave it out"
            )
    level_columns = [f"{name}={level}" for name, levels in levels_by_category.items() for level in levels]
    input_counts = Counter([*input_columns.numbers, *input_columns.dates, *level_columns])
    for name in (name for name, count in input_counts.items() if count > 1):
        raise DataError(
            f"dataset.categories: {train_frame.origin}: two inputs have the name {name!r}, a column or a level of a "
            "category as column=level: rename or leave out one"
        )
    return levels_by_category


def encode_columns(
    frames: Sequence[Frame],
    input_columns: InputColumns,
    levels_by_category: Mapping[str, Sequence[str]],
    allow_missing: bool,
) -> tuple[list[Frame], list[str], list[str]]:
    """Add the columns of numbers that encode categories and dates.

    Args:
        frames: the tables, the training rows first.
        input_columns: the columns that are inputs.
        levels_by_category: levels of each category, from `find_category_levels`.
        allow_missing: whether empty cells become missing numbers; otherwise they are errors.

    Returns:
        The tables with the added columns, the names of the columns of numbers that form a sample, and notes on cells
        whose level no training row has.

    Raises:
        DataError: columns have empty cells, without `allow_missing`; problems of several columns are raised together.
    """
    column_problems, encoded_frames, encoding_notes = ErrorList(), [], []
    for frame in frames:
        derived_columns: dict[str, pa.ChunkedArray] = {}
        for name in (*input_columns.categories, *input_columns.dates):
            with column_problems.collect_data_errors():
                cells = frame.column(name) if allow_missing else frame.read_filled_column(name)
                if name in input_columns.dates:
                    derived_columns[name] = arrow_columns.dates_to_days(cells)
                    continue
                category_texts = _read_categories(frame, name)
                for level in levels_by_category[name]:
                    derived_columns[f"{name}={level}"] = pc.equal(category_texts, level).cast(pa.float32())
                is_known_level = pc.is_in(category_texts, value_set=pa.array(levels_by_category[name]))
                if n_unknown_cells := int(np.count_nonzero(~np.asarray(is_known_level)) - category_texts.null_count):
                    file_name = Path(frame.origin).name
                    unknown_cells_text = f"{n_unknown_cells:,} cells of {name} in {file_name}"
                    encoding_notes.append(f"{unknown_cells_text} have values that no training row has")
        encoded_frames.append(replace(frame, derived_columns=derived_columns))
    column_problems.raise_collected_errors()
    level_columns = [f"{name}={level}" for name in input_columns.categories for level in levels_by_category[name]]
    return encoded_frames, [*input_columns.numbers, *level_columns, *input_columns.dates], encoding_notes


def _read_categories(frame: Frame, name: str) -> pa.ChunkedArray:
    """Return the column `name` of the table `frame` as texts without spaces around them; null for empty cells.

    Raises `DataError` if the column holds neither texts nor numbers.
    """
    cells = frame.column(name)
    if not (arrow_columns.is_text_type(cells.type) or arrow_columns.is_number_type(cells.type)):
        problem_text = f": column {name!r} must hold texts or numbers as a category, but holds {cells.type}"
        raise frame.column_error(name, problem_text)
    category_texts = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    is_empty_cell = pa.chunked_array([pa.array(arrow_columns.find_empty_cells(cells))])
    return pc.if_else(is_empty_cell, pa.scalar(None, pa.string()), category_texts)
