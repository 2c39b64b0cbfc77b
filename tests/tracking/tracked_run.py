"""A tracked run in a folder of logs, and a check of its records in MLflow."""

from pathlib import Path
from typing import Any

from mlflow.entities import Run

from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer, RunInfo
from optional_values import not_none
from record.example_run import make_report, make_run_info
from tracking.databases import Logs

CLOSED_ADDRESS = "http://127.0.0.1:9"


def run_info(logs: Logs, **options: Any) -> RunInfo:
    return make_run_info(logs.path / "runs" / "flash-a1b2c3d4-s0", **options)


def make_observers(logs: Logs) -> list[Observer]:
    return [Journal(), logs.tracker()]


def check_tracked_run(logs: Logs, last: int, status: str = "FINISHED") -> Run:
    """Check that MLflow has one run, with each metric of each step once, at the journal's time."""
    run = logs.only_run()
    lines, _ = history.read_journal_lines(Path(run.data.tags["folder"]) / "journal.jsonl")
    assert [line.step for line in lines] == list(range(last + 1))
    for name in make_report(1).metrics:
        sent_values = [(m.step, m.timestamp, m.value) for m in logs.client().get_metric_history(run.info.run_id, name)]
        assert sorted(sent_values) == [(line.step, line.time_ms, line.metrics[name]) for line in lines], name
    assert run.info.status == status
    assert len(not_none(run.inputs).dataset_inputs) == 1
    return run
