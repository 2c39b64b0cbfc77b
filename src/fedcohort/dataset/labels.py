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

from fedcohort.dataset import cells
from fedcohort.dataset.naming import list_names
from fedcohort.dataset.problems import Problems
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids

MAX_CLASSES = 100_000  # bounds the counts of every client and the outputs of the network
WHOLE_NUMBER = r"^[+-]?\d{1,18}$"


@dataclass(frozen=True)
class Labels:
    """A column of labels, read.

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


def labels_of(frames: Sequence[Frame], name: str, n_classes: int | None) -> Labels:
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
            columns.append(_values(frame, name))
    problems.raise_all()
    are_texts = [values.dtype.kind == "U" for values in columns]
    if (all(are_texts) and _are_numbers(np.concatenate(columns), n_classes)) or len(set(are_texts)) > 1:
        columns = [_read_numbers(values) for values in columns]
        are_texts = [values.dtype.kind == "U" for values in columns]
    for frame, is_text in zip(frames, are_texts, strict=True):
        if is_text != are_texts[0]:
            kinds = ["texts" if text else "whole numbers" for text in (is_text, are_texts[0])]
            raise frame.error(name, f": column {name!r} holds {kinds[0]}, and that of {frames[0].where} {kinds[1]}")
    if are_texts[0]:
        return _number_texts(frames, name, columns, n_classes)
    for frame, values in zip(frames, columns, strict=True):
        top = MAX_CLASSES - 1 if n_classes is None else n_classes - 1
        wrong = (values < 0) | (values > top)
        if wrong.any():
            row = int(wrong.argmax())
            raise frame.blame(
                name,
                row,
                f"has label {values[row]}; labels are texts, or whole numbers that are at least 0 and at most {top}",
            )
    parts = [values.astype(np.int64) for values in columns]
    if n_classes is None:
        n_classes = 1 + max(int(labels.max()) for labels in parts)
        _check_classes(frames, name, parts, [str(c) for c in range(n_classes)], n_classes)
    return Labels(parts, n_classes)


def _number_texts(frames: Sequence[Frame], name: str, columns: list[np.ndarray], n_classes: int | None) -> Labels:
    names, ids = np.unique(np.char.strip(np.concatenate(columns)), return_inverse=True)
    words = [str(word) for word in names]
    if len(words) > (n_classes or MAX_CLASSES):
        limit = f"dataset.n_classes={n_classes}" if n_classes else str(MAX_CLASSES)
        raise frames[0].error(name, f": column {name!r} has {len(words)} different labels, more than {limit}")
    parts = np.split(ids.astype(np.int64), np.cumsum([len(values) for values in columns])[:-1])
    if n_classes is None:
        _check_classes(frames, name, parts, words, len(words))
    n_changed = sum(int((np.char.strip(values) != values).sum()) for values in columns)
    notes = [f"spaces around {n_changed:,} labels removed"] if n_changed else []
    return Labels(parts, n_classes or len(words), words, notes)


def _check_classes(
    frames: Sequence[Frame], name: str, parts: Sequence[Ids], words: Sequence[str], n_classes: int
) -> None:
    """Raise `DataError` for labels that no training row has, and numbers that no row has. words: the classes' names."""
    way_out = f"set dataset.n_classes={max(n_classes, 2)} if that is intended"
    for frame, labels in zip(frames[1:], parts[1:], strict=True):
        if len(unseen := np.setdiff1d(labels, parts[0])):
            unseen_names = list_names([words[int(c)] for c in unseen])
            what = f": column {name!r} has labels that no training row has: {unseen_names}"
            raise frame.error(name, f"{what}; correct the split, or {way_out}")
    if n_classes == 1:
        raise frames[0].error(
            name, f": column {name!r} has one label only, {words[0]}: there is nothing to learn; {way_out}"
        )
    counts = np.bincount(parts[0], minlength=n_classes)
    if (counts == 0).any():
        missing = list_names([words[int(c)] for c in np.flatnonzero(counts == 0)])
        raise frames[0].error(
            name,
            f": column {name!r} goes up to {n_classes - 1}, and no row has the label {missing}; labels are 0, 1, 2, "
            f"...: number them so, write them as texts, or {way_out}",
        )


def _values(frame: Frame, name: str) -> np.ndarray:
    """Return the column's integers, or texts where there are any (dtype U)."""
    column = frame.require_full(name)
    if cells.is_text(column.type):
        return _texts(frame, name, column)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.int8()).to_numpy())
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy())
    if not cells.is_number(column.type):
        raise frame.error(name, f": column {name!r} must hold labels 0, 1, 2, ... or texts, it holds {column.type}")
    values = column.cast(pa.float64()).to_numpy()
    wrong = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) > 2**53)
    if wrong.any():
        row = int(wrong.argmax())
        raise frame.blame(name, row, f"has label {values[row]:g}; labels are texts, or whole numbers from 0 on")
    return np.asarray(values, dtype=np.int64)


def _texts(frame: Frame, name: str, column: "pa.ChunkedArray") -> np.ndarray:
    is_whole = np.asarray(pc.match_substring_regex(column, WHOLE_NUMBER).to_numpy(), dtype=bool)
    if not is_whole.all() and 2 * is_whole.sum() >= len(is_whole):
        row = int((~is_whole).argmax())
        what = f"holds {column[row].as_py()[: cells.LONGEST]!r} among whole numbers: all labels must be of one kind"
        raise frame.blame(name, row, what)
    return np.array(column.to_pylist(), dtype=np.str_)


def _read_numbers(values: np.ndarray) -> np.ndarray:
    """Return the whole numbers that all texts spell, int64; other labels as they are."""
    are_whole = values.dtype.kind == "U" and all(re.match(WHOLE_NUMBER, word) for word in np.unique(values))
    return values.astype(np.int64) if are_whole else values


def _are_numbers(texts: np.ndarray, n_classes: int | None) -> bool:
    """Return whether the texts spell 0, 1, 2, ... (or numbers below n_classes), and none in two ways."""
    words = np.unique(texts)
    numbers = np.unique(_read_numbers(words))
    are_whole = numbers.dtype.kind == "i" and len(numbers) == len(words)
    return bool(are_whole and numbers[0] >= 0 and numbers[-1] < (n_classes or len(numbers)))
