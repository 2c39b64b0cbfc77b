"""Describe what the columns of a user's table hold, and the notices about columns that need attention."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns, images
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

MAX_AUTO_LEVELS = 20  # of a text column that dataset.categories=auto encodes
MIN_SHARE = 0.9  # of a text column's cells that look like numbers or dates, so that the column is named
MAX_CELLS = 10_000  # of a text column, by which numbers and dates are recognised
EXAMPLE_LENGTH = 20  # characters of a cell in a message
MAX_RMS = 10.0  # root mean square of a feature, above which it is far from unit scale
MIN_SIZE = 0.01  # largest value of a feature, below which it is far from unit scale
MAX_COLUMNS = 40  # of a table that is looked at: each of them is compared with each other
MIN_STEPS = 8  # mean length of series, below which a table is not taken for a long one
MAX_FEATURES = 3  # features that a notice names
PLAIN_NUMBERS = "write plain numbers, as {} (docs/data.md has the lines of pandas)"
TEXT_NUMBERS = (  # what a text column holds, how its cells look, and what to do
    ("percentages", r"[+-]?[\d.,]+\s*%", PLAIN_NUMBERS.format("0.12 for 12 %")),
    (
        "numbers with thousands separators",
        r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?|[+-]?\d{1,3}(,\d{3})*\.\d+",
        PLAIN_NUMBERS.format("1234.5 for 1,234.5"),
    ),
    ("lists", r"(?s)[\[(].*[\])]", "write the table as Parquet, with lists of numbers as cells"),
    ("numbers with decimal commas", r"[+-]?\d{1,3}(\.\d{3})*,\d+|[+-]?\d*,\d+", "read them with dataset.decimal=comma"),
    ("dates", r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?", "write them as 2024-12-31 and name them in dataset.dates"),
)


def kind_of(frame: Frame, name: str) -> str:
    """Return what a column holds: number, boolean, text, date, lists, images, row number, empty or other."""
    data_type = frame.type_of(name)
    if arrow_columns.is_row_number(frame.table, name):
        return "row number"
    if pa.types.is_boolean(data_type):
        return "boolean"
    if frame.is_number(name):
        return "number"
    checks = {"images": images.holds_images, "empty": pa.types.is_null, "lists": arrow_columns.is_list}
    checks |= {"date": arrow_columns.is_date, "text": arrow_columns.is_text}
    return next((description for description, check in checks.items() if check(data_type)), "other")


def count_levels(frame: Frame, name: str) -> int:
    """Return how many different values the column has, empty cells aside."""
    column = frame.column(name)
    if not arrow_columns.is_text(column.type):
        return int(pc.count_distinct(column).as_py())
    values = pc.unique(pc.utf8_trim_whitespace(column))
    return int(pc.sum(pc.fill_null(pc.not_equal(values, ""), False)).as_py() or 0)


def recognise_text_numbers(frame: Frame, name: str) -> list[tuple[str, str]]:
    """Return what a text column's cells look like, with an example, and what to do; empty if they are just texts."""
    column = frame.column(name).slice(0, MAX_CELLS)
    values = [text for value in pc.unique(column).to_pylist() if value is not None and (text := str(value).strip())]
    for description, pattern, advice_text in TEXT_NUMBERS:
        matching = [value for value in values if re.fullmatch(pattern, value)]
        if values and len(matching) >= MIN_SHARE * len(values):
            return [(f"{description} as text ({matching[0][:EXAMPLE_LENGTH]!r})", advice_text)]
    return []


def column_notices(train: Frame, inputs: Sequence[str], excluded: Sequence[str], has_lists: bool) -> Iterator[str]:
    """Yield notices about columns that are no inputs, though they may hold information.

    Args:
        train: the training table.
        inputs: the columns that are inputs.
        excluded: the columns of labels, clients and series, and those that the user leaves out.
        has_lists: whether the inputs are columns of lists or images.
    """
    kind_by_column = {name: kind_of(train, name) for name in train.names if name not in {*inputs, *excluded}}
    dropped = [name for name, column_kind in kind_by_column.items() if column_kind != "row number"]
    texts = [name for name, column_kind in kind_by_column.items() if column_kind == "text"]
    for name in texts:
        for description, advice_text in recognise_text_numbers(train, name):
            yield f"{train.where}: column {name!r} holds {description} and is left out: {advice_text}"
    if len(dropped) > len(inputs) and not has_lists:
        remedies = []
        if any(2 <= count_levels(train, name) <= MAX_AUTO_LEVELS for name in texts):
            remedies.append("dataset.categories=auto encodes texts of few values")
        if "date" in kind_by_column.values():
            remedies.append("dataset.dates=auto encodes dates as days")
        ending = f": {' and '.join(remedies)}" if remedies else ""
        left_out = f"{len(dropped)} columns are left out ({list_names(dropped)})"
        yield f"{train.where}: {left_out} and only {len(inputs)} used as inputs{ending}"


def series_notices(train: Frame, label: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield a notice where a table looks like one row per time step."""
    if (columns := find_series(train, label)) is not None:
        series, time = columns
        leave_out_option = "" if time in excluded else f" dataset.leave_out=[{time}]"
        what = f"{train.where} looks like a long table, one row per time step {time!r} of each {series!r}"
        yield f"{what}: dataset.series={series} dataset.window=50{leave_out_option} makes samples of 50 rows"


def scale_notices(x: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    """Yield a notice where features of the training rows are far from unit scale.

    Args:
        x: the inputs of the training rows, float32 [N, features].
        names: names of the features.
    """
    rms = np.sqrt(np.einsum("nf,nf->f", x, x, dtype=np.float64, casting="same_kind") / len(x))
    largest_value = np.abs(x).max(0)
    extreme = np.flatnonzero((rms > MAX_RMS) | ((largest_value > 0) & (largest_value < MIN_SIZE)))
    if len(extreme):
        order = extreme[np.argsort(-np.abs(np.log(rms[extreme])), kind="stable")]
        extremes = [(names[j], f"{rms[j]:,.0f}" if rms[j] >= 1 else f"{rms[j]:.2g}") for j in order[:MAX_FEATURES]]
        examples = ", ".join(f"{name} ({size})" for name, size in extremes)
        examples += f" and {len(extreme) - MAX_FEATURES} more" if len(extreme) > MAX_FEATURES else ""
        what = f"{len(extreme)} of {len(names)} features are far from unit scale (root mean square: {examples})"
        yield f"{what}, which slows or stops training: set dataset.standardise=true"


def label_notices(names: Sequence[str], label: str) -> Iterator[str]:
    """Yield a notice for classes whose names differ only in case. label: the column."""
    by_lower_case: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_lower_case[name.casefold()].append(name)
    for spellings in by_lower_case.values():
        if len(spellings) > 1:
            yield f"column {label!r} has labels that differ only in case, which are different classes: {spellings}"


def number_blocks(frame: Frame, names: Sequence[str]) -> Ids:
    """Return the number of the block that each row is in: a block ends where one of the columns changes its value."""
    changed = np.zeros(frame.table.num_rows, dtype=bool)
    for name in names:
        codes = _number_values(frame.column(name))
        changed[1:] |= codes[1:] != codes[:-1]
    return np.cumsum(changed)


def _number_values(column: pa.ChunkedArray) -> Ids:
    """Return equal numbers for equal cells, int64 [rows]; empty cells are equal."""
    encoded = pa.concat_arrays(column.chunks).dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def find_series(frame: Frame, label: str) -> tuple[str, str] | None:
    """Return the columns of series and time of a table with a row for each time step; None for other tables.

    The column of series has each of its values in one block of rows with one label; blocks have MIN_STEPS rows or more
    on average. The column of time increases strictly within each block and mostly decreases between blocks.
    """
    if label not in frame.names or frame.table.num_rows < 2 * MIN_STEPS or len(frame.names) > MAX_COLUMNS:
        return None
    kinds = {name: frame.type_of(name) for name in frame.names if name != label}
    keys = [name for name, kind in kinds.items() if arrow_columns.is_text(kind) or pa.types.is_integer(kind)]
    times = [name for name, kind in kinds.items() if arrow_columns.is_number(kind) or arrow_columns.is_date(kind)]
    for key in keys:
        block = number_blocks(frame, [key])
        n = int(block[-1]) + 1
        if n < 2 or len(block) < MIN_STEPS * n or n != _number_values(frame.column(key)).max() + 1:
            continue
        if number_blocks(frame, [key, label])[-1] + 1 > n:
            continue
        inside = block[1:] == block[:-1]
        for time in times:
            column = frame.column(time)
            values = arrow_columns.days(column) if arrow_columns.is_date(column.type) else column
            step = np.diff(arrow_columns.numbers(values))
            if time != key and (step[inside] > 0).all() and (step[~inside] < 0).mean() > 0.5:
                return key, time
    return None
