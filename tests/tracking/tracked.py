"""A tracked run in a folder of logs, and what MLflow must have of it."""

from pathlib import Path
from typing import Any

from mlflow.entities import Run

from fedcohort.record import history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import Observer, RunInfo
from known import known
from record.made_up import info, report
from tracking.databases import Logs

DEAD = "http://127.0.0.1:9"


def run_info(logs: Logs, **options: Any) -> RunInfo:
    return info(logs.path / "runs" / "flash-a1b2c3d4-s0", **options)


def watchers(logs: Logs) -> list[Observer]:
    return [Journal(), logs.tracker()]


def check(logs: Logs, last: int, status: str = "FINISHED") -> Run:
    """One run, and each metric of each step in it once, with the journal's time."""
    run = logs.only_run()
    lines, _ = history.read_journal_lines(Path(run.data.tags["folder"]) / "journal.jsonl")
    assert [line.step for line in lines] == list(range(last + 1))
    for name in report(1).metrics:
        sent = [(m.step, m.timestamp, m.value) for m in logs.client().get_metric_history(run.info.run_id, name)]
        assert sorted(sent) == [(line.step, line.time_ms, line.metrics[name]) for line in lines], name
    assert run.info.status == status
    assert len(known(run.inputs).dataset_inputs) == 1
    return run
