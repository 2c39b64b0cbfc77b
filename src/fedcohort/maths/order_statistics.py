"""Quantiles of vectors with millions of numbers, without sorting them."""

import numpy as np

from fedcohort.types import Values

SUBSAMPLE_STRIDE = 64  # one in this many values is in the subsample
SUBSAMPLE_RANK_MARGIN = 8  # ranks added to twice the expected rank of the n-th smallest value in the subsample


def nth_smallest(values: Values, n: int) -> float:
    """Return the n-th smallest of `values` [k], n in [1, k]; NaN counts as the largest value.

    `np.partition` of all values is slow. Every 64th value gives an upper bound below which there are only a few values,
    which are partitioned instead. If fewer than n values are below the bound, all values are partitioned.
    """
    subsample = values[::SUBSAMPLE_STRIDE]
    subsample_rank = 2 * n // SUBSAMPLE_STRIDE + SUBSAMPLE_RANK_MARGIN
    if subsample_rank < len(subsample) // 2:
        smallest_values = values[values <= np.partition(subsample, subsample_rank)[subsample_rank]]
        values = smallest_values if len(smallest_values) >= n else values
    return float(np.partition(values, n - 1)[n - 1])
