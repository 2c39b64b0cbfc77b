"""Read the labels of tables, of a user's own data and of datasets whose classes are known.

Labels of a user's table are whole numbers from 0 on, or texts, which are numbered in sorted order.

Texts are read as numbers where they are exactly the whole numbers 0, 1, 2, ..., each with one spelling. Other texts,
such as the folders 1, 2 and 3, or 01 and 1, remain texts. Spaces around texts are removed.

An empty cell, a fraction and a text among numbers are errors that name the row. A whole number that no row has as its
label is an error, too, unless `n_classes` is set: the column may hold years or ids.

Labels of a dataset whose classes are known are class numbers, or names of classes. A file of the Hugging Face hub may
list the names of its classes in another order than the dataset. Its numbers are then mapped to those of the dataset.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.clients import read_name_chunks
from fedcohort.dataset.messages import ErrorList, join_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

MAX_CLASSES = 100_000  # bounds the counts of every client and the outputs of the network
WHOLE_NUMBER_PATTERN = r"^[+-]?\d{1,18}$"
log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class Labels:
    """The labels of the rows of several tables.

    Attributes:
        labels_by_part: labels of each table, int64 in [0, n_classes); the training table comes first.
        n_classes: number of classes.
        class_names: names of the classes in the tables; empty if labels are whole numbers.
        notes: changes of labels, for the start-up table.
    """

    labels_by_part: Sequence[Ids]
    n_classes: int
    class_names: Sequence[str] = ()
    notes: Sequence[str] = ()


def read_labels(frames: Sequence[Frame], name: str, n_classes: int | None) -> Labels:
    """Return the labels of several tables, as numbers from 0.

    Args:
        frames: the tables, the training table first.
        name: name of the column of labels.
        n_classes: number of classes; None to count the classes in the tables.

    Raises:
        DataError: a label is invalid, or has no training sample; problems of several tables are raised together.
    """
    label_columns, label_problems = [], ErrorList()
    for frame in frames:
        with label_problems.collect_data_errors():
            label_columns.append(_read_label_column(frame, name))
    label_problems.raise_collected_errors()
    are_text_columns = [label_column.dtype.kind == "U" for label_column in label_columns]
    are_class_numbers = all(are_text_columns) and _are_texts_class_numbers(np.concatenate(label_columns), n_classes)
    if are_class_numbers or len(set(are_text_columns)) > 1:
        label_columns = [_parse_whole_numbers(label_column) for label_column in label_columns]
    are_text_columns = [label_column.dtype.kind == "U" for label_column in label_columns]
    for frame, is_text_column in zip(frames, are_text_columns, strict=True):
        if is_text_column != are_text_columns[0]:
            problem_text = f": column {name!r} mixes texts and numbers with that of {frames[0].origin}: use one type"
            raise frame.column_error(name, problem_text)
    return (_encode_texts if are_text_columns[0] else _check_labels)(frames, name, label_columns, n_classes)


def _check_labels(frames: Sequence[Frame], name: str, label_columns: list[np.ndarray], n_classes: int | None) -> Labels:
    """Return labels that are whole numbers. Raises `DataError` if one is no class, or if a class has no training row.

    Args:
        frames: the tables, the training table first.
        name: name of the column of labels.
        label_columns: labels of each table, integers [rows].
        n_classes: number of classes; None to count the classes in the tables.
    """
    max_label = (n_classes or MAX_CLASSES) - 1
    for frame, labels in zip(frames, label_columns, strict=True):
        is_invalid = (labels < 0) | (labels > max_label)
        allowed_text = f"whole numbers that are at least 0 and at most {max_label}"
        frame.check_cells(name, is_invalid, lambda row: f"has label {labels[row]}; labels are texts, or {allowed_text}")  # noqa: B023
    labels_by_part = [labels.astype(np.int64) for labels in label_columns]
    if n_classes is None:
        n_classes = 1 + max(int(labels.max()) for labels in labels_by_part)
        _check_classes(frames, name, labels_by_part, [str(c) for c in range(n_classes)])
    return Labels(labels_by_part, n_classes)


def _encode_texts(frames: Sequence[Frame], name: str, label_columns: list[np.ndarray], n_classes: int | None) -> Labels:
    """Return labels that are texts as their numbers in the sorted order of the different texts.

    Raises `DataError` for too many classes, or for a class without training rows.

    The arguments are those of `_check_labels`, with texts in `label_columns`.
    """
    label_texts = np.concatenate(label_columns)
    stripped_labels = np.char.strip(label_texts)
    distinct_labels, label_numbers = np.unique(stripped_labels, return_inverse=True)
    class_names = [str(distinct_label) for distinct_label in distinct_labels]
    if len(class_names) > (n_classes or MAX_CLASSES):
        max_classes_text = f"dataset.n_classes={n_classes}" if n_classes else str(MAX_CLASSES)
        problem_text = f": column {name!r} has {len(class_names)} different labels, more than {max_classes_text}"
        raise frames[0].column_error(name, f"{problem_text}: name another column with dataset.label")
    labels_by_part = np.split(label_numbers.astype(np.int64), np.cumsum([len(column) for column in label_columns])[:-1])
    if n_classes is None:
        _check_classes(frames, name, labels_by_part, class_names)
    n_stripped_labels = int((stripped_labels != label_texts).sum())
    label_notes = [f"spaces around {n_stripped_labels:,} labels removed"] if n_stripped_labels else []
    return Labels(labels_by_part, n_classes or len(class_names), class_names, label_notes)


def _check_classes(frames: Sequence[Frame], name: str, labels_by_part: Sequence[Ids], classes: Sequence[str]) -> None:
    """Raise `DataError` if there is one class only, or if a class or another table's label is in no training row.

    Args:
        frames: the tables, the training table first.
        name: name of the column of labels.
        labels_by_part: labels of each table, int64 [rows].
        classes: names of all classes, by number.
    """
    n_classes = len(classes)
    remedy = f"set dataset.n_classes={max(n_classes, 2)} if that is intended"
    for frame, labels in zip(frames[1:], labels_by_part[1:], strict=True):
        if len(unseen_labels := np.setdiff1d(labels, labels_by_part[0])):
            unseen_labels_text = join_names([classes[c] for c in unseen_labels])
            problem_text = f": column {name!r} has labels that no training row has: {unseen_labels_text}"
            raise frame.column_error(name, f"{problem_text}; correct the split, or {remedy}")
    class_counts = np.bincount(labels_by_part[0], minlength=n_classes)
    if n_classes == 1:
        problem_text = f": column {name!r} has the single label {classes[0]}: there is nothing to learn; {remedy}"
        raise frames[0].column_error(name, problem_text)
    if (class_counts == 0).any():
        missing_labels_text = join_names([classes[int(c)] for c in np.flatnonzero(class_counts == 0)])
        problem_text = f": column {name!r} goes up to {n_classes - 1}, but no row has the label {missing_labels_text}"
        allowed_text = "number the labels 0, 1, 2, ..., write them as texts"
        raise frames[0].column_error(name, f"{problem_text}; {allowed_text}, or {remedy}")


def _read_label_column(frame: Frame, name: str) -> np.ndarray:
    """Return the labels in a table's column `name`, int64 [rows], or as texts [rows] if the column holds texts.

    Raises `DataError` if half or more of the texts are whole numbers, but not all.
    """
    cells = _read_label_cells(frame, name)
    if not arrow_columns.is_text_type(cells.type):
        return np.asarray(cells).astype(np.int64)
    is_integer = np.asarray(pc.match_substring_regex(cells, WHOLE_NUMBER_PATTERN))
    if 2 * is_integer.sum() >= len(is_integer):
        allowed_text = "among whole numbers: labels must be all whole numbers or all texts"
        max_length = arrow_columns.MAX_CELL_LENGTH
        frame.check_cells(name, ~is_integer, lambda row: f"holds {cells[row].as_py()[:max_length]!r} {allowed_text}")
    return np.array(cells.to_pylist(), dtype=np.str_)


def _parse_whole_numbers(labels: np.ndarray) -> np.ndarray:
    """Return `labels`, labels [n], as int64 if they are texts that are all whole numbers, else unchanged."""
    are_whole = labels.dtype.kind == "U" and all(re.match(WHOLE_NUMBER_PATTERN, label) for label in np.unique(labels))
    return labels.astype(np.int64) if are_whole else labels


def _are_texts_class_numbers(label_texts: np.ndarray, n_classes: int | None) -> bool:
    """Return whether `label_texts` [n] are the numbers 0, 1, 2, ..., with gaps only below a set `n_classes`."""
    distinct_texts = np.unique(label_texts)
    class_numbers = np.unique(_parse_whole_numbers(distinct_texts))
    are_whole_numbers = class_numbers.dtype.kind == "i" and len(class_numbers) == len(distinct_texts)
    return bool(are_whole_numbers and class_numbers[0] >= 0 and class_numbers[-1] < (n_classes or len(class_numbers)))


def read_class_column(frame: Frame, name: str, classes: Sequence[str]) -> Ids:
    """Return the class of each row of a table whose classes are known, int64 [rows].

    Args:
        frame: table that has the column.
        name: name of the column of class numbers or class names.
        classes: names of the classes, in the order of their numbers.

    Raises:
        DataError: a label is no class; the message names the row.
    """
    cells = _read_label_cells(frame, name)
    if arrow_columns.is_text_type(cells.type):
        class_numbers = pc.index_in(cells, value_set=pa.array(classes, cells.type))
        is_unknown_class = np.asarray(class_numbers.is_null())
        allowed_text = f"labels are {join_names(classes)}, or their numbers"
        frame.check_cells(name, is_unknown_class, lambda row: f"has label {cells[row].as_py()!r}; {allowed_text}")
        return np.asarray(class_numbers, dtype=np.int64)
    numbers = np.asarray(cells).astype(np.int64)
    is_invalid, allowed_text = (numbers < 0) | (numbers >= len(classes)), f"at least 0 and at most {len(classes) - 1}"
    frame.check_cells(name, is_invalid, lambda row: f"has label {numbers[row]}; labels must be whole, {allowed_text}")
    return _map_class_numbers(frame, name, classes)[numbers]


def _read_label_cells(frame: Frame, name: str) -> pa.ChunkedArray:
    """Return a table's column `name` of texts, whole numbers or booleans. Raises `DataError` for other cells."""
    frame.read_filled_column(name)
    return pa.chunked_array(list(read_name_chunks(frame, name, "label")))


def _map_class_numbers(frame: Frame, name: str, classes: Sequence[str]) -> Ids:
    """Return the dataset's number of each class by its number in a table's file, int64 [classes].

    A file of the Hugging Face hub may store the names of its classes. Names that `classes` does not contain are ignored
    if the numbers of all other names agree. A warning shows both lists if no name is in `classes`.

    Args:
        frame: table whose metadata may hold the names.
        name: name of the column of labels.
        classes: the dataset's names of the classes, by number.

    Raises:
        DataError: a name belongs to another number, and the numbers can't be mapped.
    """
    file_classes = arrow_columns.read_schema_json(frame.table.schema, b"huggingface", "info", "features", name, "names")
    normalise_name = _fold_name if len({_fold_name(class_name) for class_name in classes}) == len(classes) else str
    class_number_by_name = {normalise_name(class_name): class_number for class_number, class_name in enumerate(classes)}
    class_numbers = [class_number_by_name.get(normalise_name(class_name)) for class_name in file_classes]
    if file_classes and set(class_numbers) == {None}:
        log.warning(
            "%s: column %r names its classes %s, but the dataset names them %s: labels are matched by number",
            *(frame.origin, name, join_names(file_classes), join_names(classes)),
        )
    renumbered_classes = [c for c, class_number in enumerate(class_numbers) if class_number not in (None, c)]
    if not renumbered_classes:
        return np.arange(len(classes))
    if None in class_numbers or len(set(class_numbers)) < len(class_numbers):
        c = renumbered_classes[0]
        raise frame.column_error(
            name,
            f": column {name!r} numbers the classes differently from the dataset: its class {c}, {file_classes[c]!r}, "
            f"is class {class_numbers[c]} of the dataset. Write the names of the classes as labels, or renumber them",
        )
    return np.array(class_numbers, dtype=np.int64)


def _fold_name(class_name: str) -> str:
    """Return the name `class_name` in lower case without spaces and signs: `tshirttop` for `T-shirt / top`."""
    return "".join(character for character in class_name if character.isalnum()).casefold()
