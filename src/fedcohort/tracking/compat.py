"""Undocumented parts of MLflow 3.17.2 that this package uses, one function each."""

import math
import sys


def read_value(value: float) -> float:
    """Return the logged value of a metric that MLflow returns as `value`: it stores infinity as the largest float."""
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value


def is_conflict(error: BaseException) -> bool:
    """Return whether `error` says that another process had locked the database, or was writing the same metrics.

    MLflow wraps the errors of SQLite, of which only the text is left. The uploading process of a killed run may still
    send rounds when that of the resumed run sends them as well.
    """
    return any(cause in str(error) for cause in ("database is locked", "UNIQUE constraint failed: metrics."))
