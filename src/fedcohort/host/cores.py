"""The number of cores that this process may use."""

import math
import os

from fedcohort.host import control_groups


def available_cores() -> int:
    """Return the number of cores in this process's affinity, or its container's quota if that is lower; at least 1."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(n_cores, control_groups.cpu_quota())))
