"""The places of rows within their groups: which of an owner's, or of a class's, come first in an order."""

from typing import Any

import numpy as np
from jaxtyping import Int

from fedcohort.types import Ids

PIECE = 2**18  # rows that are counted at a time
Positions = Int[np.ndarray, "_n"]  # int32 wherever they fit: of small samples an array of all of them is large


def shuffled(n: int, rng: np.random.Generator) -> Positions:
    """All positions below n in a random order, [n]: the one of `rng.permutation(n)`, in half the memory."""
    order = np.arange(n, dtype=_type_for(n))
    rng.shuffle(order)
    return order


def rank(groups: Ids, order: Positions | None = None) -> Positions:
    """The place of each row among those of its group, counted from 0, in `order`; None: as they stand. [N].

    Rows are counted piece by piece: a sort of them all would be several arrays of their number. groups: int64 [N],
    counted from 0. order: all positions, [N].
    """
    place = np.empty(len(groups), dtype=_type_for(len(groups)))
    seen = np.zeros(groups.max(initial=-1) + 1, dtype=np.int64)
    for start in range(0, len(groups), PIECE):
        rows = slice(start, start + PIECE) if order is None else order[start : start + PIECE]
        piece = groups[rows]
        by_group, counts = np.argsort(piece, kind="stable"), np.bincount(piece, minlength=len(seen))
        own = np.empty(len(piece), dtype=np.int64)
        own[by_group] = np.arange(len(piece)) - (np.cumsum(counts) - counts)[piece[by_group]]
        place[rows] = seen[piece] + own
        seen += counts
    return place


def _type_for(n: int) -> type[np.signedinteger[Any]]:
    return np.int32 if n < 2**31 else np.int64


def keep_first(rows: Ids, groups: Ids, most: Ids) -> Ids:
    """Return those of `rows`, best first, that are among the first so many of their group; most: by group.

    groups: of all rows, int64 [N].
    """
    kept: Ids = rows[rank(groups[rows]) < most[groups[rows]]]
    return kept
