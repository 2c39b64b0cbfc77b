"""The number of cores that this process may use."""

import os


def count_available_cores() -> int:
    """Return the number of cores that this process may run on, such as those of its SLURM job."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
