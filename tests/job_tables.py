"""A table of jobs for tests, in which only the columns that matter are given."""

from typing import Any

import numpy as np

from fedcohort.device.base import Timing
from fedcohort.round.jobs import Jobs


def make_jobs(**columns: Any) -> Jobs:
    """Return jobs of clients 0, 1, 2, ... with these columns; the others have zeros, and no samples are chosen."""
    n_jobs = len(next(iter(columns.values())))
    zero_counts, zero_s = np.zeros(n_jobs, np.int64), np.zeros(n_jobs)
    table: dict[str, Any] = {
        "client": np.arange(n_jobs),
        "broadcast": zero_counts,
        "plain": np.zeros(n_jobs, bool),
        "assigned": zero_counts + 1,
        "units": zero_counts + 1,
        "start_s": zero_s,
        "tensor_mask": [None] * n_jobs,
        "zero_fill": np.zeros(n_jobs, bool),
        "bytes_up": zero_s,
        "announced_s": zero_s,
        "expected": Timing(zero_s, zero_s, zero_s, zero_s),
        "rows": [None] * n_jobs,
        "losses": [None] * n_jobs,
        "timing": Timing(zero_s, zero_s, zero_s, zero_s),
        "duration_s": zero_s,
    }
    return Jobs(**{**table, **{name: np.array(column) for name, column in columns.items()}})
