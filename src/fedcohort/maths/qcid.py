"""The quadratic class imbalance of Fed-CBS: QCID = sum_c (share of class c - 1/C)^2 (Zhang et al. 2023)."""

import numpy as np
from jaxtyping import Float64

from fedcohort.types import Values

BLOCK = 4096  # rows at a time, so that they stay in the processor's cache

Counts = Float64[np.ndarray, "_n c"]


def class_imbalances(h: Counts, added_counts: Values | float = 0.0) -> Values:
    """Return the imbalance of each row of class counts, [n]: 0 for equal counts, 1 - 1/C for a single class or none.

    added_counts: counts that are added to every row, [C].
    """
    out = np.empty(len(h))
    for start in range(0, len(h), BLOCK):
        rows = slice(start, start + BLOCK)
        out[rows] = _block_imbalances(h[rows] + added_counts)
    return out


def _block_imbalances(shares: Counts) -> Values:
    """Return the imbalance of each row of class counts, which are overwritten."""
    C = shares.shape[1]
    n = shares @ np.ones((C, 1))  # sums of integers are exact in any order
    has_samples = n[:, 0] > 0
    np.divide(shares, n, out=shares, where=True if has_samples.all() else n > 0)
    shares -= 1 / C
    shares *= shares
    return np.asarray(np.where(has_samples, shares.sum(1), 1 - 1 / C))
