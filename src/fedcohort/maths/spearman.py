"""Spearman's rank correlation, with mean ranks of ties."""

import numpy as np

from fedcohort.types import Values


def mean_ranks(numbers: Values) -> Values:
    """Return the rank of each of the finite `numbers` [n], from 0, with the mean rank for equal values, [n]."""
    _, value_index, value_counts = np.unique(numbers, return_inverse=True, return_counts=True)
    n_smaller_numbers = np.concatenate([[0], np.cumsum(value_counts)[:-1]])
    return np.asarray((n_smaller_numbers + (value_counts - 1) / 2)[value_index])


def rank_correlation(first_column: Values, second_column: Values) -> float:
    """Return the rank correlation of `first_column` and `second_column` [n]; NaN for constant ranks.

    Rows in which one of the columns is not finite are left out.
    """
    is_finite_pair = np.isfinite(first_column) & np.isfinite(second_column)
    if not is_finite_pair.any():
        return float("nan")
    rank_columns = [mean_ranks(rank_column[is_finite_pair]) for rank_column in (first_column, second_column)]
    first_deviations, second_deviations = (rank_column - rank_column.mean() for rank_column in rank_columns)
    norm_product = float(np.sqrt((first_deviations @ first_deviations) * (second_deviations @ second_deviations)))
    return float(first_deviations @ second_deviations) / norm_product if norm_product > 0 else float("nan")
