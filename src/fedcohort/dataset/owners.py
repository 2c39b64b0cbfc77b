"""Who made the rows of a user's own tables."""

import numpy as np

from fedcohort.dataset import cells
from fedcohort.dataset.table import Frame
from fedcohort.types import Ids


def owners_of(train: Frame, test: Frame, name: str | None) -> tuple[Ids | None, Ids | None]:
    """The owners in the column `name`, int64 [N], numbered in sorted order; None where there is no such column.

    The test table may lack it, the training table may not. Raises `DataError`.
    """
    if name is None:
        return None, None
    frames = [train, *([test] if name in test.names else [])]
    found = [frame.require_full(name) for frame in frames]
    for frame, column in zip(frames, found, strict=True):
        if not (cells.is_text(column.type) or cells.is_number(column.type)):
            raise frame.error(name, f": column {name!r} must hold texts or numbers, it holds {column.type}")
    if len({cells.is_text(column.type) for column in found}) > 1:
        raise test.error(name, f": column {name!r} mixes texts and numbers with that of {train.where}")
    _, ids = np.unique(np.concatenate([column.to_numpy() for column in found]), return_inverse=True)
    first, second = np.split(ids.astype(np.int64), [len(found[0])])
    return first, second if len(found) == 2 else None
