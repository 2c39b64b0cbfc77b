"""Undocumented parts of MLflow 3.17.2 that this package uses, one function each."""

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH = 500  # runs per statement: databases limit the number of variables
Reading = tuple[str, str, int, float]  # run, metric, step, value


def read_histories(client: "MlflowClient", runs: Sequence[str], names: Sequence[str]) -> list[Reading] | None:
    """Read the histories of metrics from a database, ordered by time; None if the client has no database.

    This uses `MlflowClient._tracking_client.store.engine` and the columns of
    `mlflow.store.tracking.dbmodels.models.SqlMetric` (MLflow 3.17.2), which is ten times as fast as MLflow's client.
    The caller uses the client if the result is None.
    """
    try:
        from mlflow.store.tracking.dbmodels.models import SqlMetric
        from sqlalchemy import select

        engine = client._tracking_client.store.engine
        columns = (SqlMetric.run_uuid, SqlMetric.key, SqlMetric.step, SqlMetric.value, SqlMetric.is_nan)
        statement: Any = select(*columns).where(SqlMetric.key.in_(names)).order_by(SqlMetric.timestamp)
    except (ImportError, AttributeError):
        return None
    readings: list[Reading] = []
    with engine.connect() as connection:
        for start in range(0, len(runs), BATCH):
            rows = connection.execute(statement.where(SqlMetric.run_uuid.in_(runs[start : start + BATCH])))
            readings += [
                (run, name, step, math.nan if is_nan else read_value(value)) for run, name, step, value, is_nan in rows
            ]
    return readings


def read_value(value: float) -> float:
    """Return the logged value: MLflow 3.17.2 stores infinity as the largest float."""
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value


def is_conflict(error: BaseException) -> bool:
    """Return whether another process had locked the database, or was writing the same metrics.

    MLflow wraps the errors of SQLite, of which only the text is left. The follower of a killed run may still send
    rounds when that of the resumed run sends them as well.
    """
    return any(text in str(error) for text in ("database is locked", "UNIQUE constraint failed: metrics."))
