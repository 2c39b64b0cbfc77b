"""The mean of the middle values of each column of a matrix."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort.types import Values

# columns that are ordered at a time: they stay in the cache, and memory does not grow with all columns
COLUMNS_PER_BLOCK = 4096


def trimmed_mean(matrix: Float[Tensor, "n p"], k: int) -> tuple[Float[Tensor, "p"], Values]:
    """Return the mean of each column of `matrix` [n, p] without its k smallest and k largest values, k < n / 2.

    Returns:
        The means, [p], and the share of the remaining values that belongs to each row, [n].
    """
    n, matrix_values = len(matrix), matrix.cpu().numpy()
    column_means, n_middle_values = np.empty(matrix_values.shape[1], matrix_values.dtype), np.zeros(n, np.int64)
    for block_start in range(0, matrix_values.shape[1], COLUMNS_PER_BLOCK):
        block_columns = np.ascontiguousarray(matrix_values[:, block_start : block_start + COLUMNS_PER_BLOCK].T)
        middle_values = np.partition(block_columns, (k, n - k - 1), axis=1)[:, k : n - k]
        column_means[block_start : block_start + COLUMNS_PER_BLOCK] = middle_values.mean(axis=1)
        n_middle_values += ((block_columns >= middle_values[:, :1]) & (block_columns <= middle_values[:, -1:])).sum(
            axis=0
        )
    return torch.from_numpy(column_means).to(matrix), n_middle_values / n_middle_values.sum()
