"""The private parts of MLflow are there: where one is gone, these fail with a sentence that names the version."""

import sqlite3
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

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
    assert compat.is_conflict(caught.value), f"SQLite {sqlite3.sqlite_version} says it otherwise: {caught.value}"
    assert not compat.is_conflict(ValueError("no such table"))


def test_histories_are_read_at_once(tmp_path: Path) -> None:
    """As MLflow's own client has them, NaN included, the later of two values of a step last."""
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    run = client.create_run(client.create_experiment("x")).info.run_id
    values = [Metric("a", 1.0, 5, 0), Metric("a", float("nan"), 6, 1), Metric("a", 2.0, 9, 0), Metric("b", 7.0, 5, 0)]
    client.log_batch(run, [*values, Metric("c", 8.0, 5, 0)])
    found = compat.read_histories(client, [run], ["a", "b"])
    assert found is not None, f"mlflow {version('mlflow')} has other tables: comparisons of many runs take minutes"
    assert sorted(map(str, found)) == sorted(str((run, m.key, m.step, m.value)) for m in values)
    assert [value for _, name, step, value in found if (name, step) == ("a", 0)] == [1.0, 2.0]
    client.log_batch(run, [Metric("d", float("inf"), 5, 0), Metric("e", -float("inf"), 5, 0)])
    ends = compat.read_histories(client, [run], ["d", "e"])
    assert sorted(value for *_, value in ends or []) == [-float("inf"), float("inf")], "MLflow keeps 1.8e308"
    assert [compat.read_value(value) for value in client.get_run(run).data.metrics.values()].count(float("inf")) == 1
    assert compat.read_histories(SimpleNamespace(), [run], ["a"]) is None  # type: ignore[arg-type]
