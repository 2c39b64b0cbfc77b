"""Read the labels of a dataset whose classes are known: class numbers, or the names of the classes.

A file of the Hugging Face hub may list the names of its classes in another order than the dataset. Its numbers are then
mapped to those of the dataset.
"""

import logging
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import list_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

log = logging.getLogger("fedcohort")


def read_classes(frame: Frame, name: str, classes: Sequence[str]) -> Ids:
    """Return the class of each row, int64 [rows].

    Args:
        frame: the table.
        name: the column of numbers or texts.
        classes: names of the classes, in the order of their numbers.

    Raises:
        DataError: a label is no class; the message names the row.
    """
    column = frame.require_full(name)
    if arrow_columns.is_text(column.type):
        numbers = pc.index_in(column, value_set=pa.array(classes, column.type))
        allowed = f"labels are {list_names(classes)}, or their numbers"
        unknown = np.asarray(numbers.is_null())
        frame.check_cells(name, unknown, lambda row: f"has label {column[row].as_py()!r}; {allowed}")
        return np.asarray(numbers, dtype=np.int64)
    if not arrow_columns.is_number(column.type):
        raise frame.column_error(name, f": column {name!r} must hold labels, numbers or texts, it holds {column.type}")
    values = arrow_columns.numbers(column)
    wrong = ~np.isfinite(values) | (values != np.floor(values)) | (values < 0) | (values >= len(classes))
    allowed = f"labels must be whole, at least 0 and at most {len(classes) - 1}"
    frame.check_cells(name, wrong, lambda row: f"has label {column[row].as_py()}; {allowed}")
    return _map_numbers(frame, name, classes)[values.astype(np.int64)]


def _map_numbers(frame: Frame, name: str, classes: Sequence[str]) -> Ids:
    """Return the dataset's number of each class number of the file, int64 [classes].

    Names that `classes` does not contain are ignored if the numbers of all other names agree. A warning shows both
    lists if no name is in `classes`, since the numbers may mean something else.

    Raises:
        DataError: a name belongs to another number, and the numbers can't be mapped.
    """
    file_classes = arrow_columns.metadata_texts(frame.table.schema, b"huggingface", "info", "features", name, "names")
    normalise = _normalise if len({_normalise(text) for text in classes}) == len(classes) else str
    number_of_class = {normalise(text): number for number, text in enumerate(classes)}
    numbers = [number_of_class.get(normalise(text)) for text in file_classes]
    if file_classes and set(numbers) == {None}:
        log.warning(
            "%s: column %r names its classes %s, but the dataset names them %s: labels are matched by number",
            *(frame.where, name, list_names(file_classes), list_names(classes)),
        )
    different = [c for c, number in enumerate(numbers) if number not in (None, c)]
    if not different:
        return np.arange(len(classes))
    if None in numbers or len(set(numbers)) < len(numbers):
        c = different[0]
        raise frame.column_error(
            name,
            f": column {name!r} names its class {c} {file_classes[c]!r}, which is class {numbers[c]} here; labels may "
            "be the classes' names",
        )
    return np.array(numbers, dtype=np.int64)


def _normalise(text: str) -> str:
    """Return a name without case, spaces and signs, so that `T - shirt / top` and `T-shirt/top` are equal."""
    return "".join(letter for letter in text if letter.isalnum()).casefold()
