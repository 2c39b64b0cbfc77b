"""Ranks of rows within their groups, which are owners or classes, in a given order."""

import numpy as np

from fedcohort.types import Ids


def rank_within_group(groups: Ids, order: Ids | None = None) -> Ids:
    """Return the rank of each row among the rows of its group, from 0, int64 [N].

    Args:
        groups: group of each row, int64 [N], from 0.
        order: all positions in the order of the ranks, [N]; None for the order of the rows.
    """
    order = np.arange(len(groups)) if order is None else order
    by_group, counts = order[_stable_order(groups[order])], np.bincount(groups)
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[by_group] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def _stable_order(groups: Ids) -> Ids:
    """Return np.argsort(groups, kind="stable") of integers in [0, 2^32), whose halves numpy sorts in linear time."""
    order = np.argsort(groups.astype(np.uint16), kind="stable")
    if len(groups) and groups.max() >= 2**16:
        order = order[np.argsort((groups >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def keep_first(rows: Ids, groups: Ids, limits: Ids) -> Ids:
    """Return the first limits[g] of `rows` of each group g, in their order; groups: of all rows, int64 [N]."""
    return np.asarray(rows[rank_within_group(groups[rows]) < limits[groups[rows]]])
