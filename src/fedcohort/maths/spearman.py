"""Spearman's rank correlation, with mean ranks of ties."""

import numpy as np

from fedcohort.types import Values


def mean_ranks(values: Values) -> Values:
    """Return the ranks of finite values, from 0, with the mean rank for equal values, [n]."""
    _, index_of_value, count = np.unique(values, return_inverse=True, return_counts=True)
    n_smaller = np.concatenate([[0], np.cumsum(count)[:-1]])
    ranks: Values = (n_smaller + (count - 1) / 2)[index_of_value]
    return ranks


def rank_correlation(a: Values, b: Values) -> float:
    """Return rho of two columns over the rows where both are finite; NaN if one of them is constant there."""
    finite = np.isfinite(a) & np.isfinite(b)
    x, y = (mean_ranks(column[finite]) for column in (a, b))
    x, y = x - x.mean() if len(x) else x, y - y.mean() if len(y) else y
    norm_product = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / norm_product if norm_product > 0 else float("nan")
