"""Ranks of rows within their groups, which are owners or classes, in a given order."""

import numpy as np

from fedcohort.types import Ids


def rank_within_group(group_of_row: Ids, row_order: Ids | None = None) -> Ids:
    """Return the rank of each row among the rows of its group, from 0, int64 [N].

    Args:
        group_of_row: group of each row, int64 [N], from 0.
        row_order: all positions in the order of the ranks, [N]; None ranks rows in their own order.
    """
    row_order = np.arange(len(group_of_row)) if row_order is None else row_order
    rows_by_group, group_sizes = row_order[_sort_rows_by_group(group_of_row[row_order])], np.bincount(group_of_row)
    rank_of_row = np.empty(len(group_of_row), dtype=np.int64)
    rank_of_row[rows_by_group] = np.arange(len(group_of_row)) - np.repeat(
        np.cumsum(group_sizes) - group_sizes, group_sizes
    )
    return rank_of_row


def _sort_rows_by_group(group_of_row: Ids) -> Ids:
    """Return the positions that sort `group_of_row`, integers in [0, 2^32), int64 [N]; ties keep their order."""
    group_order = np.argsort(group_of_row.astype(np.uint16), kind="stable")
    if len(group_of_row) and group_of_row.max() >= 2**16:
        group_order = group_order[np.argsort((group_of_row >> 16).astype(np.uint16)[group_order], kind="stable")]
    return group_order


def first_rows_by_group(row_positions: Ids, group_of_row: Ids, max_rows_by_group: Ids) -> Ids:
    """Return the first rows of each group, in the order of `row_positions`, int64.

    Args:
        row_positions: positions of the rows to choose from, int64 [n].
        group_of_row: group of each of all rows, int64 [N].
        max_rows_by_group: largest number of rows to keep of each group, int64 [groups].
    """
    group_of_position = group_of_row[row_positions]
    return np.asarray(row_positions[rank_within_group(group_of_position) < max_rows_by_group[group_of_position]])
