"""Describe what the columns of a user's table hold, and the notices about columns that need attention."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns, images
from fedcohort.dataset.messages import join_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

MAX_AUTO_LEVELS = 20  # of a text column that dataset.categories=auto encodes
MIN_MATCHING_SHARE = 0.9  # of a text column's cells that look like numbers or dates, so that the column is named
MAX_INSPECTED_CELLS = 10_000  # of a text column, by which numbers and dates are recognised
EXAMPLE_LENGTH = 20  # characters of a cell in a message
MAX_FEATURE_RMS = 10.0  # root mean square of a feature, above which it is far from unit scale
MIN_LARGEST_FEATURE_VALUE = 0.01  # largest value of a feature, below which it is far from unit scale
MAX_COMPARED_COLUMNS = 40  # of a table that is looked at: each of them is compared with each other
MIN_SERIES_ROWS = 8  # mean length of series, below which a table is not taken for a long one
MAX_SHOWN_FEATURES = 3  # features that a notice names
PLAIN_NUMBER_REMEDY = "write plain numbers, as {} (docs/data.md has the lines of pandas)"
TEXT_NUMBER_PATTERNS = (  # what a text column holds, how its cells look, and what to do
    ("percentages", r"[+-]?[\d.,]+\s*%", PLAIN_NUMBER_REMEDY.format("0.12 for 12 %")),
    (
        "numbers with thousands separators",
        r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?|[+-]?\d{1,3}(,\d{3})*\.\d+",
        PLAIN_NUMBER_REMEDY.format("1234.5 for 1,234.5"),
    ),
    ("lists", r"(?s)[\[(].*[\])]", "write the table as Parquet, with lists of numbers as cells"),
    ("numbers with decimal commas", r"[+-]?\d{1,3}(\.\d{3})*,\d+|[+-]?\d*,\d+", "read them with dataset.decimal=comma"),
    ("dates", r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?", "write them as 2024-12-31 and name them in dataset.dates"),
)


def find_column_kind(frame: Frame, name: str) -> str:
    """Return the kind of a column: number, boolean, text, date, lists, images, row number, empty or other.

    Args:
        frame: table that has the column.
        name: name of the column.
    """
    column_type = frame.get_column_type(name)
    if arrow_columns.is_row_index_column(frame.table, name):
        return "row number"
    if pa.types.is_boolean(column_type):
        return "boolean"
    if frame.is_number_column(name):
        return "number"
    type_checks = {"images": images.is_image_type, "empty": pa.types.is_null, "lists": arrow_columns.is_list_type}
    type_checks |= {"date": arrow_columns.is_date_type, "text": arrow_columns.is_text_type}
    return next((column_kind for column_kind, is_of_kind in type_checks.items() if is_of_kind(column_type)), "other")


def count_column_levels(frame: Frame, name: str) -> int:
    """Return the number of different values in the column `name` of the table `frame`; empty cells don't count."""
    cells = frame.column(name)
    if not arrow_columns.is_text_type(cells.type):
        return int(pc.count_distinct(cells).as_py())
    return int(pc.sum(pc.fill_null(pc.not_equal(pc.unique(pc.utf8_trim_whitespace(cells)), ""), False)).as_py() or 0)


def recognise_text_numbers(frame: Frame, name: str) -> list[tuple[str, str]]:
    """Recognise texts that stand for numbers, dates or lists, such as `12 %`, in the text column `name` of a table.

    Returns:
        A list of one pair, a description with an example and a remedy; [] for other texts.
    """
    cells = frame.column(name).slice(0, MAX_INSPECTED_CELLS)
    distinct_texts = [str(cell_text).strip() for cell_text in pc.unique(cells).to_pylist() if cell_text is not None]
    distinct_texts = [distinct_text for distinct_text in distinct_texts if distinct_text]
    for content_description, text_pattern, remedy in TEXT_NUMBER_PATTERNS:
        matching_texts = [cell_text for cell_text in distinct_texts if re.fullmatch(text_pattern, cell_text)]
        if distinct_texts and len(matching_texts) >= MIN_MATCHING_SHARE * len(distinct_texts):
            return [(f"{content_description} as text ({matching_texts[0][:EXAMPLE_LENGTH]!r})", remedy)]
    return []


def input_notices(frame: Frame, inputs: Sequence[str], non_inputs: Sequence[str], has_lists: bool) -> Iterator[str]:
    """Yield notices about columns that are no inputs, though they may contain information.

    Args:
        frame: the training table.
        inputs: names of the columns that are inputs.
        non_inputs: names of the columns of labels, clients and series, and of those that the user leaves out.
        has_lists: whether the inputs are columns of lists or images.
    """
    kind_by_column = {name: find_column_kind(frame, name) for name in frame.names if name not in {*inputs, *non_inputs}}
    dropped_columns = [name for name, column_kind in kind_by_column.items() if column_kind != "row number"]
    text_columns = [name for name, column_kind in kind_by_column.items() if column_kind == "text"]
    for name in text_columns:
        for content_description, remedy in recognise_text_numbers(frame, name):
            yield f"{frame.origin}: column {name!r} holds {content_description} and is left out: {remedy}"
    if len(dropped_columns) > len(inputs) and not has_lists:
        remedies = []
        if any(2 <= count_column_levels(frame, name) <= MAX_AUTO_LEVELS for name in text_columns):
            remedies.append("dataset.categories=auto encodes texts of few values")
        if "date" in kind_by_column.values():
            remedies.append("dataset.dates=auto encodes dates as days")
        message_end = f": {' and '.join(remedies)}" if remedies else ""
        dropped_columns_text = (
            f"{len(dropped_columns)} {'column is' if len(dropped_columns) == 1 else 'columns are'} left out "
            f"({join_names(dropped_columns)})"
        )
        yield f"{frame.origin}: {dropped_columns_text} and only {len(inputs)} used as inputs{message_end}"


def make_long_table_notices(frame: Frame, label_column: str, non_inputs: Sequence[str]) -> Iterator[str]:
    """Yield a notice if a table seems to have one row per time step.

    Args:
        frame: the training table.
        label_column: name of the column of labels.
        non_inputs: names of the columns that are no inputs.
    """
    if (series_and_time_columns := find_series_and_time_columns(frame, label_column)) is not None:
        series_column, time_column = series_and_time_columns
        leave_out_text = "" if time_column in non_inputs else f" dataset.leave_out=[{time_column}]"
        yield (
            f"{frame.origin} looks like a long table, one row per time step {time_column!r} of each {series_column!r}: "
            f"dataset.series={series_column} dataset.window=50{leave_out_text} makes samples of 50 rows"
        )


def make_feature_scale_notices(x: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    """Yield a notice if features are far from unit scale: a root mean square above 10, or no value of 0.01 or more.

    Args:
        x: inputs of the training rows, float32 [N, features].
        names: names of the features.
    """
    root_mean_squares = np.sqrt(np.einsum("nf,nf->f", x, x, dtype=np.float64, casting="same_kind") / len(x))
    largest_values = np.maximum(x.max(0), -x.min(0))
    is_tiny_feature = (largest_values > 0) & (largest_values < MIN_LARGEST_FEATURE_VALUE)
    unscaled_features = np.flatnonzero((root_mean_squares > MAX_FEATURE_RMS) | is_tiny_feature)
    if n_unscaled := len(unscaled_features):
        feature_order = unscaled_features[
            np.argsort(-np.abs(np.log(root_mean_squares[unscaled_features])), kind="stable")
        ]
        listed_features = [(names[i], root_mean_squares[i]) for i in feature_order[:MAX_SHOWN_FEATURES]]
        rms_texts = ", ".join(
            f"{name} ({rms:,.0f})" if rms >= 1 else f"{name} ({rms:.2g})" for name, rms in listed_features
        )
        rms_texts += f" and {n_unscaled - MAX_SHOWN_FEATURES} more" if n_unscaled > MAX_SHOWN_FEATURES else ""
        yield (
            f"{n_unscaled} of {len(names)} features are far from unit scale (root mean square: {rms_texts}), which "
            "slows or stops training: set dataset.standardise=true"
        )


def make_label_case_notices(class_names: Sequence[str], label_column: str) -> Iterator[str]:
    """Yield a notice for each group of classes whose names differ only in case.

    Args:
        class_names: names of the classes.
        label_column: name of the column of labels.
    """
    class_names_by_lower_case: dict[str, list[str]] = defaultdict(list)
    for class_name in class_names:
        class_names_by_lower_case[class_name.casefold()].append(class_name)
    for labels in class_names_by_lower_case.values():
        if len(labels) > 1:
            yield f"column {label_column!r} has labels that differ only in case, which are different classes: {labels}"


def find_row_blocks(frame: Frame, column_names: Sequence[str]) -> Ids:
    """Return the block of each row, int64 [rows] from 0; a block ends where a column changes its value.

    Args:
        frame: table that has the columns.
        column_names: names of the columns.
    """
    is_block_start = np.zeros(frame.table.num_rows, dtype=bool)
    for name in column_names:
        cells = frame.column(name)
        if cells.null_count or not pa.types.is_integer(cells.type):  # equal texts share a number, and so do empty cells
            cells = pa.concat_arrays(cells.chunks).dictionary_encode(null_encoding="encode").indices
        is_block_start[1:] |= np.diff(cells) != 0
    return np.cumsum(is_block_start)


def find_series_and_time_columns(frame: Frame, label_column: str) -> tuple[str, str] | None:
    """Return the columns of series and time of a table with one row per time step; None for other tables.

    In the column of series, each value fills one block of rows with one label. Blocks have `MIN_SERIES_ROWS` rows or
    more on average.
    The column of time increases strictly within each block and mostly decreases between blocks.

    Args:
        frame: table to inspect.
        label_column: name of the column of labels.
    """
    if (
        label_column not in frame.names
        or frame.table.num_rows < 2 * MIN_SERIES_ROWS
        or len(frame.names) > MAX_COMPARED_COLUMNS
    ):
        return None
    column_types = {name: frame.get_column_type(name) for name in frame.names if name != label_column}
    series_candidates, time_candidates = [], []
    for name, column_type in column_types.items():
        if arrow_columns.is_text_type(column_type) or pa.types.is_integer(column_type):
            series_candidates.append(name)
        if arrow_columns.is_number_type(column_type) or arrow_columns.is_date_type(column_type):
            time_candidates.append(name)
    for series_column in series_candidates:
        block_of_row = find_row_blocks(frame, [series_column])
        n_blocks = int(block_of_row[-1]) + 1
        has_short_blocks = n_blocks < 2 or len(block_of_row) < MIN_SERIES_ROWS * n_blocks
        if has_short_blocks or find_row_blocks(frame, [series_column, label_column])[-1] + 1 > n_blocks:
            continue
        if pc.count_distinct(frame.column(series_column), mode="all").as_py() != n_blocks:
            continue
        is_inside_block = block_of_row[1:] == block_of_row[:-1]
        for time_column in time_candidates:
            cells = frame.column(time_column)
            time_values = arrow_columns.dates_to_days(cells) if arrow_columns.is_date_type(cells.type) else cells
            time_changes = np.diff(arrow_columns.as_float64(time_values))
            times_increase = (time_changes[is_inside_block] > 0).all()
            if time_column != series_column and times_increase and (time_changes[~is_inside_block] < 0).mean() > 0.5:
                return series_column, time_column
    return None
