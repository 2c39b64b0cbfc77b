"""Read the clients that the rows of a user's tables belong to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort.dataset import cells
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids


@dataclass(frozen=True)
class Owners:
    """The clients of rows.

    Attributes:
        train: the client of each training row, int64 [N], numbered in the sorted order of names; None without a column.
        test: the client of each test row, int64 [N]; None without a column.
        names: names of the clients in the tables, by number.
    """

    train: Ids | None = None
    test: Ids | None = None
    names: Sequence[str] = ()


def owners_of(train: Frame, test: Frame, name: str | None) -> Owners:
    """Return the clients in the column `name`; none where that is None.

    The test table may lack the column, the training table may not. Raises `DataError`.
    """
    if name is None:
        return Owners()
    frames = [train, *([test] if name in test.names else [])]
    columns = [frame.require_full(name) for frame in frames]
    for frame, column in zip(frames, columns, strict=True):
        if not (cells.is_text(column.type) or cells.is_number(column.type)):
            raise frame.error(name, f": column {name!r} must hold texts or numbers, it holds {column.type}")
    if len({cells.is_text(column.type) for column in columns}) > 1:
        raise test.error(name, f": column {name!r} mixes texts and numbers with that of {train.where}")
    values = [_exact(frame, name, column) for frame, column in zip(frames, columns, strict=True)]
    names, ids = np.unique(np.concatenate(values), return_inverse=True)
    first, second = np.split(ids.astype(np.int64), [len(columns[0])])
    return Owners(first, second if len(columns) == 2 else None, tuple(map(str, names)))


def _exact(frame: Frame, name: str, column: Any) -> np.ndarray:  # noqa: ANN401  pyarrow has no types
    """Return texts and truth values as they are, numbers as int64: as floats, neighbouring ids would become one.

    Raises `DataError` for a number that is not whole, infinite, or beyond int64.
    """
    import pyarrow as pa

    if cells.is_text(column.type) or pa.types.is_boolean(column.type):
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64()).to_numpy()
        wrong = ~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) > 2**53)
        if wrong.any():
            row = int(wrong.argmax())
            raise frame.blame(name, row, f"has client {values[row]:g}; clients are texts, or whole numbers")
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise frame.error(name, f": column {name!r}: clients are texts, or whole numbers in int64: {reason}") from error
