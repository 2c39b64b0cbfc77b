"""The private parts of MLflow are there: where one is gone, these fail with a sentence that names the version."""

import sqlite3
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Metric

from fedcohort.tracking import compat


def test_a_locked_database_is_recognised_by_its_message(tmp_path: Path) -> None:
    first, second = (sqlite3.connect(tmp_path / "some.db", timeout=0) for _ in range(2))
    first.execute("begin exclusive")
    with pytest.raises(sqlite3.OperationalError) as caught:
        second.execute("begin exclusive")
    first.close()
    second.close()
    assert compat.is_lock_conflict(caught.value), f"SQLite {sqlite3.sqlite_version} says it otherwise: {caught.value}"
    assert not compat.is_lock_conflict(ValueError("no such table"))


def test_infinite_values_are_read_back(tmp_path: Path) -> None:
    """MLflow keeps 1.8e308."""
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    run = client.create_run(client.create_experiment("x")).info.run_id
    client.log_batch(run, [Metric("d", float("inf"), 5, 0), Metric("e", -float("inf"), 5, 0)])
    values = [compat.read_metric_value(value) for value in client.get_run(run).data.metrics.values()]
    assert sorted(values) == [-float("inf"), float("inf")]
