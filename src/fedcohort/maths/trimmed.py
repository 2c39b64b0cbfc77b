"""The mean of the middle values of each column of a matrix."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort.types import Values

COLUMNS = 4096  # columns that are ordered at a time: they stay in the cache, and memory does not grow with all columns


def trimmed_mean(matrix: Float[Tensor, "n p"], k: int) -> tuple[Float[Tensor, "p"], Values]:
    """Return the mean of each column without its k smallest and k largest values, k < n / 2.

    Returns:
        The means, [p], and the share of each row in the values between the extremes, [n]; ties with these count, too.
    """
    n, values = len(matrix), matrix.cpu().numpy()
    means, counts = np.empty(values.shape[1], values.dtype), np.zeros(n, np.int64)
    for start in range(0, values.shape[1], COLUMNS):
        columns = np.ascontiguousarray(values[:, start : start + COLUMNS].T)
        untrimmed_values = np.partition(columns, (k, n - k - 1), axis=1)[:, k : n - k]
        means[start : start + COLUMNS] = untrimmed_values.mean(axis=1)
        counts += ((columns >= untrimmed_values[:, :1]) & (columns <= untrimmed_values[:, -1:])).sum(axis=0)
    return torch.from_numpy(means).to(matrix), counts / counts.sum()
