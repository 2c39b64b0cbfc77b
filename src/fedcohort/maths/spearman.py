"""Spearman's rank correlation, with mean ranks of ties."""

import numpy as np

from fedcohort.types import Values


def mean_ranks(values: Values) -> Values:
    """Return the ranks of finite values, from 0, with the mean rank for equal values, [n]."""
    _, index_of_value, value_counts = np.unique(values, return_inverse=True, return_counts=True)
    n_smaller = np.concatenate([[0], np.cumsum(value_counts)[:-1]])
    return np.asarray((n_smaller + (value_counts - 1) / 2)[index_of_value])


def rank_correlation(first_column: Values, second_column: Values) -> float:
    """Return rho of two columns over the rows where both are finite; NaN if one of them is constant there."""
    is_finite = np.isfinite(first_column) & np.isfinite(second_column)
    if not is_finite.any():
        return float("nan")
    ranks = [mean_ranks(column[is_finite]) for column in (first_column, second_column)]
    first, second = (column - column.mean() for column in ranks)
    norm_product = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / norm_product if norm_product > 0 else float("nan")
