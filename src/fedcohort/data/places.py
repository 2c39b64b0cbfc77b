"""Ranks of rows within their groups, which are owners or classes, in a given order."""

from typing import Any

import numpy as np
from jaxtyping import Int

from fedcohort.types import Ids

CHUNK = 2**18  # rows that are ranked at a time
Positions = Int[np.ndarray, "_n"]  # int32 if they fit, as the array has an entry for every sample


def shuffled_positions(n: int, rng: np.random.Generator) -> Positions:
    """Return the positions below n in the random order of `rng.permutation(n)`, [n], with half the memory."""
    order = np.arange(n, dtype=_type_for(n))
    rng.shuffle(order)
    return order


def rank_within_group(groups: Ids, order: Positions | None = None) -> Positions:
    """Return the rank of each row among the rows of its group, from 0, [N].

    Rows are ranked chunk by chunk, as a sort of all rows would need several arrays of N entries.

    Args:
        groups: group of each row, int64 [N], from 0.
        order: all positions in the order of the ranks, [N]; None for the order of the rows.
    """
    ranks = np.empty(len(groups), dtype=_type_for(len(groups)))
    n_ranked = np.zeros(groups.max(initial=-1) + 1, dtype=np.int64)  # by group, in earlier chunks
    for start in range(0, len(groups), CHUNK):
        rows = slice(start, start + CHUNK) if order is None else order[start : start + CHUNK]
        chunk = groups[rows]
        by_group, counts = np.argsort(chunk, kind="stable"), np.bincount(chunk, minlength=len(n_ranked))
        rank_in_chunk = np.empty(len(chunk), dtype=np.int64)
        rank_in_chunk[by_group] = np.arange(len(chunk)) - (np.cumsum(counts) - counts)[chunk[by_group]]
        ranks[rows] = n_ranked[chunk] + rank_in_chunk
        n_ranked += counts
    return ranks


def _type_for(n: int) -> type[np.signedinteger[Any]]:
    return np.int32 if n < 2**31 else np.int64


def keep_first(rows: Ids, groups: Ids, limits: Ids) -> Ids:
    """Return the first limits[g] of `rows` of each group g, in their order; groups: of all rows, int64 [N]."""
    first: Ids = rows[rank_within_group(groups[rows]) < limits[groups[rows]]]
    return first
