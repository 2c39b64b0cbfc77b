"""Read the labels of a user's tables: whole numbers from 0 on, or texts, which are numbered in sorted order.

Texts are read as numbers where they are exactly the whole numbers 0, 1, 2, ..., each with one spelling. Other texts,
such as the folders 1, 2 and 3, or 01 and 1, remain texts. Spaces around texts are removed.

An empty cell, a fraction and a text among numbers are errors that name the row. A whole number that no row has as its
label is an error, too, unless `n_classes` is set: the column may hold years or ids.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedcohort.dataset import arrow_columns
from fedcohort.dataset.messages import Problems, list_names
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

MAX_CLASSES = 100_000  # bounds the counts of every client and the outputs of the network
WHOLE_NUMBER = r"^[+-]?\d{1,18}$"


@dataclass(frozen=True)
class Labels:
    """The labels of tables.

    Attributes:
        parts: int64 labels in [0, n_classes) of each table, the training rows' first.
        n_classes: the number of classes.
        names: names of the classes in the tables, empty for whole numbers.
        notes: what was changed.
    """

    parts: Sequence[Ids]
    n_classes: int
    names: Sequence[str] = ()
    notes: Sequence[str] = ()


def read_labels(frames: Sequence[Frame], name: str, n_classes: int | None) -> Labels:
    """Return the labels of all tables.

    Args:
        frames: the tables, the training rows first.
        name: the column of labels.
        n_classes: None for as many as there are.

    Raises:
        DataError: problems of several tables are raised together.
    """
    columns, problems = [], Problems()
    for frame in frames:
        with problems.collect():
            columns.append(_read_column(frame, name))
    problems.raise_all()
    are_texts = [values.dtype.kind == "U" for values in columns]
    if (all(are_texts) and _are_class_numbers(np.concatenate(columns), n_classes)) or len(set(are_texts)) > 1:
        columns = [_parse_numbers(values) for values in columns]
    kinds = ["texts" if values.dtype.kind == "U" else "whole numbers" for values in columns]
    for frame, kind in zip(frames, kinds, strict=True):
        if kind != kinds[0]:
            what = f": column {name!r} holds {kind}, and that of {frames[0].where} {kinds[0]}"
            raise frame.column_error(name, what)
    labels = _number_texts if kinds[0] == "texts" else _check_numbers
    return labels(frames, name, columns, n_classes)


def _check_numbers(frames: Sequence[Frame], name: str, columns: list[np.ndarray], n_classes: int | None) -> Labels:
    """Return labels that are whole numbers. Raises `DataError` for a number that is no class."""
    top = (n_classes or MAX_CLASSES) - 1
    for frame, values in zip(frames, columns, strict=True):
        wrong, allowed = (values < 0) | (values > top), f"whole numbers that are at least 0 and at most {top}"
        frame.check_cells(name, wrong, lambda row: f"has label {values[row]}; labels are texts, or {allowed}")  # noqa: B023
    parts = [values.astype(np.int64) for values in columns]
    if n_classes is None:
        n_classes = 1 + max(int(labels.max()) for labels in parts)
        _check_classes(frames, name, parts, [str(c) for c in range(n_classes)])
    return Labels(parts, n_classes)


def _number_texts(frames: Sequence[Frame], name: str, columns: list[np.ndarray], n_classes: int | None) -> Labels:
    """Return labels that are texts, numbered in sorted order. Raises `DataError` for too many."""
    texts = np.concatenate(columns)
    stripped = np.char.strip(texts)
    values, ids = np.unique(stripped, return_inverse=True)
    names = [str(value) for value in values]
    if len(names) > (n_classes or MAX_CLASSES):
        limit = f"dataset.n_classes={n_classes}" if n_classes else str(MAX_CLASSES)
        what = f": column {name!r} has {len(names)} different labels, more than {limit}"
        raise frames[0].column_error(name, what)
    parts = np.split(ids.astype(np.int64), np.cumsum([len(column) for column in columns])[:-1])
    if n_classes is None:
        _check_classes(frames, name, parts, names)
    n_changed = int((stripped != texts).sum())
    notes = [f"spaces around {n_changed:,} labels removed"] if n_changed else []
    return Labels(parts, n_classes or len(names), names, notes)


def _check_classes(frames: Sequence[Frame], name: str, parts: Sequence[Ids], names: Sequence[str]) -> None:
    """Raise `DataError` for labels that no training row has, and numbers that no row has. names: of all classes."""
    n_classes = len(names)
    remedy = f"set dataset.n_classes={max(n_classes, 2)} if that is intended"
    for frame, labels in zip(frames[1:], parts[1:], strict=True):
        if len(unseen := np.setdiff1d(labels, parts[0])):
            unseen_names = list_names([names[c] for c in unseen])
            what = f": column {name!r} has labels that no training row has: {unseen_names}"
            raise frame.column_error(name, f"{what}; correct the split, or {remedy}")
    counts = np.bincount(parts[0], minlength=n_classes)
    if n_classes == 1:
        what = f": column {name!r} has one label only, {names[0]}: there is nothing to learn; {remedy}"
        raise frames[0].column_error(name, what)
    if (counts == 0).any():
        missing = list_names([names[int(c)] for c in np.flatnonzero(counts == 0)])
        raise frames[0].column_error(
            name,
            f": column {name!r} goes up to {n_classes - 1}, and no row has the label {missing}; labels are 0, 1, 2, "
            f"...: number them so, write them as texts, or {remedy}",
        )


def _read_column(frame: Frame, name: str) -> np.ndarray:
    """Return the column's integers, or texts where there are any (dtype U)."""
    column = frame.require_full(name)
    if arrow_columns.is_text(column.type):
        is_whole = np.asarray(pc.match_substring_regex(column, WHOLE_NUMBER))
        if 2 * is_whole.sum() >= len(is_whole):
            allowed = "among whole numbers: all labels must be of one kind"
            frame.check_cells(
                name, ~is_whole, lambda row: f"holds {column[row].as_py()[: arrow_columns.MAX_CELL]!r} {allowed}"
            )
        return np.array(column.to_pylist(), dtype=np.str_)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.int8()))
    if pa.types.is_integer(column.type):
        return np.asarray(column)
    if not arrow_columns.is_number(column.type):
        what = f": column {name!r} must hold labels 0, 1, 2, ... or texts, it holds {column.type}"
        raise frame.column_error(name, what)
    values = np.asarray(column.cast(pa.float64()))
    wrong = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) > 2**53)
    allowed = "labels are texts, or whole numbers from 0 on"
    frame.check_cells(name, wrong, lambda row: f"has label {values[row]:g}; {allowed}")
    return values.astype(np.int64)


def _parse_numbers(values: np.ndarray) -> np.ndarray:
    """Return whole numbers, int64, if all labels are texts of such numbers; other labels unchanged."""
    are_whole = values.dtype.kind == "U" and all(re.match(WHOLE_NUMBER, text) for text in np.unique(values))
    return values.astype(np.int64) if are_whole else values


def _are_class_numbers(texts: np.ndarray, n_classes: int | None) -> bool:
    """Return whether texts spell 0, 1, 2, ... (or numbers below n_classes), and no number is spelt in two ways."""
    spellings = np.unique(texts)
    numbers = np.unique(_parse_numbers(spellings))
    are_whole = numbers.dtype.kind == "i" and len(numbers) == len(spellings)
    return bool(are_whole and numbers[0] >= 0 and numbers[-1] < (n_classes or len(numbers)))
