"""What the package uses of MLflow that MLflow doesn't document, as it is in MLflow 3.17.2: one function each."""

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient

AT_ONCE = 500  # runs: databases have a limit of variables in a statement
Reading = tuple[str, str, int, float]  # run, metric, step, value


def read_histories(client: "MlflowClient", runs: Sequence[str], names: Sequence[str]) -> list[Reading] | None:
    """Read whole histories from a database at once, in the order of their times; None where that can't be done.

    It can't from a server. Rests on `MlflowClient._tracking_client.store.engine` and on the columns of
    `mlflow.store.tracking.dbmodels.models.SqlMetric` (MLflow 3.17.2). MLflow's own client takes ten times as long, and
    stands in where one of them is gone.
    """
    try:
        from mlflow.store.tracking.dbmodels.models import SqlMetric
        from sqlalchemy import select

        engine = client._tracking_client.store.engine
        columns = (SqlMetric.run_uuid, SqlMetric.key, SqlMetric.step, SqlMetric.value, SqlMetric.is_nan)
        asked: Any = select(*columns).where(SqlMetric.key.in_(names)).order_by(SqlMetric.timestamp)
    except (ImportError, AttributeError):
        return None
    found: list[Reading] = []
    with engine.connect() as connection:
        for start in range(0, len(runs), AT_ONCE):
            rows = connection.execute(asked.where(SqlMetric.run_uuid.in_(runs[start : start + AT_ONCE])))
            found += [
                (run, name, step, math.nan if is_nan else read_value(value)) for run, name, step, value, is_nan in rows
            ]
    return found


def read_value(value: float) -> float:
    """Return what was logged: MLflow keeps an infinity as the largest number there is (MLflow 3.17.2)."""
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value


def is_locked(error: BaseException) -> bool:
    """Whether the database was locked by another process.

    MLflow wraps SQLite's error: its text alone is left, and "database is locked" is SQLite's (MLflow 3.17.2).
    """
    return "database is locked" in str(error)
