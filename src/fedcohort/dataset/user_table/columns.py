"""Describe the columns of a user's table, and choose those that are inputs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import cells, images
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

AUTO = "auto"
MAX_AUTO_LEVELS = 20  # of a text column that dataset.categories=auto encodes
MIN_SHARE = 0.9  # of a text column's cells that look like numbers or dates, so that the column is named
MAX_CELLS = 10_000  # of a text column, by which numbers and dates are recognised
MAX_NAMES = 12  # columns that a message names
EXAMPLE_LENGTH = 20  # characters of a cell in a message
TEXT_NUMBERS = (  # what a text column holds, how its cells look, and what to do
    (
        "percentages",
        re.compile(r"[+-]?[\d.,]+\s*%"),
        "write plain numbers, as 0.12 for 12 % (docs/data.md has the lines of pandas)",
    ),
    (
        "numbers with thousands separators",
        re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?|[+-]?\d{1,3}(,\d{3})*\.\d+"),
        "write plain numbers, as 1234.5 for 1,234.5 (docs/data.md has the lines of pandas)",
    ),
    (
        "lists",
        re.compile(r"[\[(].*[\])]", re.DOTALL),
        "write the table as Parquet, with lists of numbers as cells",
    ),
    (
        "numbers with decimal commas",
        re.compile(r"[+-]?\d{1,3}(\.\d{3})*,\d+|[+-]?\d*,\d+"),
        "read them with dataset.decimal=comma",
    ),
    (
        "dates",
        re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?"),
        "write them as 2024-12-31 and name them in dataset.dates",
    ),
)


@dataclass(frozen=True)
class Inputs:
    """The columns that are inputs.

    Attributes:
        numbers: columns of numbers and truth values.
        categories: columns that are encoded by one number for each level.
        dates: columns that are encoded as days since 1970.
        lists: columns of lists or images; a sample consists of these alone where there are any.
    """

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.numbers, *self.categories, *self.dates, *self.lists)


def kind_of(frame: Frame, name: str) -> str:
    """Return what a column holds: number, truth value, text, date, lists, images, row number, nothing or other."""
    kind = frame.type_of(name)
    if frame.is_row_number(name):
        return "row number"
    if images.holds_images(kind):
        return "images"
    if pa.types.is_null(kind):
        return "nothing"
    checks = {"truth value": pa.types.is_boolean, "number": cells.is_number, "lists": cells.is_list}
    checks |= {"date": cells.is_date, "text": cells.is_text}
    word = next((word for word, check in checks.items() if check(kind)), "other")
    return "number" if word == "text" and frame.is_number(name) else word


def choose_inputs(
    frame: Frame,
    excluded: Iterable[str | None],
    features: Sequence[str],
    categories: Sequence[str] | str,
    dates: Sequence[str] | str,
) -> Inputs:
    """Choose the columns that are inputs.

    Args:
        frame: the training table.
        excluded: the columns of labels, clients and series, and those that the user leaves out.
        features: the columns of lists or images that the user names, none for columns of scalars.
        categories: columns to encode by their levels, or "auto" for all texts of few levels.
        dates: columns to encode as numbers, or "auto" for all dates.

    Raises:
        DataError: if no column is an input, or a named column is none of its kind.
    """
    if features:
        return Inputs(lists=tuple(features))
    kinds = {name: kind_of(frame, name) for name in frame.names if name not in set(excluded)}
    if dates == AUTO:
        dates = [name for name, kind in kinds.items() if kind == "date"]
    if categories == AUTO:
        texts = [name for name, kind in kinds.items() if kind == "text"]
        categories = [name for name in texts if 2 <= count_levels(frame, name) <= MAX_AUTO_LEVELS]
    numbers = [
        name for name, kind in kinds.items() if kind in ("number", "truth value") and name not in {*categories, *dates}
    ]
    for name in dates:
        if frame.column(name) is not None and not cells.is_date(frame.type_of(name)):
            raise DataError(
                f"dataset.dates: {frame.where}: column {name!r} must hold dates as 2024-12-31, it holds "
                f"{frame.type_of(name)}{_example(frame, name)}"
            )
    inputs = Inputs(tuple(numbers), tuple(categories), tuple(dates))
    if not inputs.names:
        raise _no_inputs(frame, kinds)
    return inputs


def _no_inputs(frame: Frame, kinds: dict[str, str]) -> DataError:
    """Return the error for a table without columns of numbers, with what can be done about its other columns."""
    lists = [name for name, kind in kinds.items() if kind in ("lists", "images")]
    texts = [name for name, kind in kinds.items() if kind == "text"]
    advice = [f"{name!r} holds {what}: {remedy}" for name in texts for what, remedy in text_numbers(frame, name)]
    if lists:
        advice.append(f"dataset.features=[{','.join(lists)}] takes the columns of lists or images")
    if any(2 <= count_levels(frame, name) <= MAX_AUTO_LEVELS for name in texts):
        advice.append("dataset.categories=auto encodes texts of few values")
    if not advice:
        advice.append("turn texts into numbers, or columns of lists of numbers, and write them as Parquet")
    columns = ", ".join(f"{name} ({kind})" for name, kind in list(kinds.items())[:MAX_NAMES])
    return DataError(
        f"dataset.features: {frame.where} has no column of numbers besides the label. Its other columns: "
        f"{columns or 'none'}; {'; '.join(advice)}"
    )


def count_levels(frame: Frame, name: str) -> int:
    """Return how many different values the column has, empty cells aside."""
    column = frame.column(name)
    if not cells.is_text(column.type):
        return int(pc.count_distinct(column).as_py())
    values = pc.unique(pc.utf8_trim_whitespace(column))
    return int(pc.sum(pc.fill_null(pc.not_equal(values, ""), False)).as_py() or 0)


def text_numbers(frame: Frame, name: str) -> list[tuple[str, str]]:
    """Return what a text column's cells look like, with an example, and what to do; empty if they are just texts."""
    values = [
        str(value).strip()
        for value in pc.unique(frame.column(name).slice(0, MAX_CELLS)).to_pylist()
        if value is not None
    ]
    values = [value for value in values if value]
    for what, form, remedy in TEXT_NUMBERS:
        matching = [value for value in values if form.fullmatch(value)]
        if values and len(matching) >= MIN_SHARE * len(values):
            return [(f"{what} as text ({matching[0][:EXAMPLE_LENGTH]!r})", remedy)]
    return []


def _example(frame: Frame, name: str) -> str:
    values = pc.drop_null(frame.column(name).slice(0, 99)).to_pylist()
    return f" (as {str(values[0])[:EXAMPLE_LENGTH]!r})" if values else ""
