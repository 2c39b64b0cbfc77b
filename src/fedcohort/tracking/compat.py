"""Undocumented parts of MLflow 3.17.2 that this package uses, one function each."""

import math
import sys


def read_metric_value(metric_value: float) -> float:
    """Return the logged value of a metric, given MLflow's `metric_value`, in which infinity is the largest float."""
    return math.copysign(math.inf, metric_value) if abs(metric_value) == sys.float_info.max else metric_value


def is_lock_conflict(error: BaseException) -> bool:
    """Return whether `error` says that another process had locked the database, or was writing the same metrics.

    MLflow wraps SQLite's errors, so that only their text can be read. Two processes may send the same rounds: the
    uploading process of a killed run, and that of the resumed run.
    """
    return any(c in str(error) for c in ("database is locked", "UNIQUE constraint failed: metrics."))
