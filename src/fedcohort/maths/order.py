"""Order statistics of long vectors: a few of the smallest of many."""

import numpy as np

from fedcohort.types import Values

STRIDE = 64  # one of so many is looked at first
SPARE = 8  # places beyond the one that is expected to bound the n smallest


def nth_smallest(values: Values, n: int) -> float:
    """The n-th smallest of `values` [K], n in [1, K]; NaN counts as larger than all.

    `np.partition` of a million moves them all. Here every 64th gives a bound that few are below, and those alone are
    ordered; where fewer than n are below it after all, everything is.
    """
    some = values[::STRIDE]
    place = 2 * n // STRIDE + SPARE
    if place < len(some) // 2:
        near = values[values <= np.partition(some, place)[place]]
        values = near if len(near) >= n else values
    return float(np.partition(values, n - 1)[n - 1])
