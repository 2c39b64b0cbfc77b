"""The number of cores that this process may use."""

import math
import os

from fedcohort.host import control_groups


def available() -> int:
    """Return the cores of this process's affinity, or fewer where its container has a quota; at least 1."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(known, control_groups.cpu_quota())))
