"""The quadratic class imbalance of Fed-CBS: QCID = sum_c (share of class c - 1/C)^2 (Zhang et al. 2023)."""

import numpy as np
from jaxtyping import Float64

from fedcohort.types import Values

ROWS_PER_BLOCK = 4096  # rows at a time, so that they stay in the processor's cache

ClassCounts = Float64[np.ndarray, "_n c"]


def class_imbalances(class_counts: ClassCounts, added_class_counts: Values | float = 0.0) -> Values:
    """Return sum_c (share_c - 1/C)^2 of each row of class counts, [n]: 0 for equal counts, at most 1 - 1/C.

    A row without samples has the value 1 - 1/C.

    Args:
        class_counts: number of samples of each class in each row.
        added_class_counts: counts that are added to every row, [C].
    """
    row_imbalances = np.empty(len(class_counts))
    for block_start in range(0, len(class_counts), ROWS_PER_BLOCK):
        block_rows = slice(block_start, block_start + ROWS_PER_BLOCK)
        row_imbalances[block_rows] = _imbalances_of_block(class_counts[block_rows] + added_class_counts)
    return row_imbalances


def _imbalances_of_block(class_shares: ClassCounts) -> Values:
    """Return the imbalance of each row of class counts in `class_shares` [n, C], [n]; the array is overwritten."""
    n_classes = class_shares.shape[1]
    samples_per_row = class_shares @ np.ones((n_classes, 1))  # sums of integers are exact in any order
    has_samples = samples_per_row[:, 0] > 0
    np.divide(class_shares, samples_per_row, out=class_shares, where=True if has_samples.all() else samples_per_row > 0)
    class_shares -= 1 / n_classes
    class_shares *= class_shares
    return np.asarray(np.where(has_samples, class_shares.sum(1), 1 - 1 / n_classes))
