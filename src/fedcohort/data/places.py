"""The places of rows within their groups: which of an owner's, or of a class's, come first in an order."""

import numpy as np

from fedcohort.types import Ids

PIECE = 2**18  # rows that are counted at a time


def rank(groups: Ids, order: Ids | None = None) -> Ids:
    """The place of each row among those of its group, counted from 0, in `order`; None: as they stand.

    Rows are counted piece by piece: a sort of them all would be several arrays of their number. groups: int64 [N],
    counted from 0. order: all positions, int64 [N].
    """
    place, seen = np.empty(len(groups), dtype=np.int64), np.zeros(groups.max(initial=-1) + 1, dtype=np.int64)
    for start in range(0, len(groups), PIECE):
        rows = slice(start, start + PIECE) if order is None else order[start : start + PIECE]
        piece = groups[rows]
        by_group, counts = np.argsort(piece, kind="stable"), np.bincount(piece, minlength=len(seen))
        own = np.empty(len(piece), dtype=np.int64)
        own[by_group] = np.arange(len(piece)) - (np.cumsum(counts) - counts)[piece[by_group]]
        place[rows] = seen[piece] + own
        seen += counts
    return place
