"""Who made the rows of a user's own tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.dataset import cells
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids


@dataclass(frozen=True)
class Owners:
    """Whose each row is.

    Attributes:
        train, test: int64 [N], numbered in the sorted order of their names; None where no column tells.
        names: what each is called in the tables, by its number.
    """

    train: Ids | None = None
    test: Ids | None = None
    names: Sequence[str] = ()


def owners_of(train: Frame, test: Frame, name: str | None) -> Owners:
    """Return the owners in the column `name`; nobody where that is None.

    The test table may lack it, the training table may not. Raises `DataError`.
    """
    if name is None:
        return Owners()
    frames = [train, *([test] if name in test.names else [])]
    found = [frame.require_full(name) for frame in frames]
    for frame, column in zip(frames, found, strict=True):
        if not (cells.is_text(column.type) or cells.is_number(column.type)):
            raise frame.error(name, f": column {name!r} must hold texts or numbers, it holds {column.type}")
    if len({cells.is_text(column.type) for column in found}) > 1:
        raise test.error(name, f": column {name!r} mixes texts and numbers with that of {train.where}")
    names, ids = np.unique(np.concatenate([column.to_numpy() for column in found]), return_inverse=True)
    first, second = np.split(ids.astype(np.int64), [len(found[0])])
    return Owners(first, second if len(found) == 2 else None, tuple(map(str, names)))
