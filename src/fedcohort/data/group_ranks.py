"""Ranks of rows within their groups, which are owners or classes, in a given order."""

import numpy as np

from fedcohort.types import Ids


def rank_within_group(groups: Ids, row_order: Ids | None = None) -> Ids:
    """Return the rank of each row among the rows of its group, from 0, int64 [N].

    Args:
        groups: group of each row, int64 [N], from 0.
        row_order: all positions in the order of the ranks, [N]; None ranks rows in their own order.
    """
    row_order = np.arange(len(groups)) if row_order is None else row_order
    rows_by_group, group_sizes = row_order[_stable_order(groups[row_order])], np.bincount(groups)
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[rows_by_group] = np.arange(len(groups)) - np.repeat(np.cumsum(group_sizes) - group_sizes, group_sizes)
    return ranks


def _stable_order(groups: Ids) -> Ids:
    """Return np.argsort(groups, kind="stable") of integers in [0, 2^32), int64 [N], in linear time."""
    order = np.argsort(groups.astype(np.uint16), kind="stable")
    if len(groups) and groups.max() >= 2**16:
        order = order[np.argsort((groups >> 16).astype(np.uint16)[order], kind="stable")]
    return order


def keep_first(rows: Ids, groups: Ids, max_rows_by_group: Ids) -> Ids:
    """Return the first rows of each group, in the order of `rows`, int64.

    Args:
        rows: positions of the rows to choose from, int64 [n].
        groups: group of each of all rows, int64 [N].
        max_rows_by_group: largest number of rows to keep of each group, int64 [groups].
    """
    return np.asarray(rows[rank_within_group(groups[rows]) < max_rows_by_group[groups[rows]]])
