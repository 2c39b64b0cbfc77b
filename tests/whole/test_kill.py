"""A run that is killed at any point resumes to the bits of an uninterrupted run, and MLflow has each round once.

Forked children are killed at six points, before or after a random call of each critical function. Then the real
`python train.py` is killed by another process.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlflow import MlflowClient

from command_harness import run_command
from config_options import ROOT
from fedcohort.lightning import checkpoint
from fedcohort.record import client_table, history, journal
from fedcohort.tracking.tracker import MlflowTracker
from fedcohort.training.local import LocalTrainer
from forked_follower import fork_followers
from hostile.kills import POINTS
from optional_values import not_none
from run_harness import FinishedRun, run_training, same_bits
from tracking.databases import database_template

OVERRIDES = ("selector=flash", "agg=scaffold", "rounds=5", "logger=mlflow", "logger.every_s=0", "callback=default")
QUIET = ("callback.figures=null", "callback.progress=null", "callback.summary=null")

# moment: (owner, function name, number of calls in a run of five rounds)
MOMENTS: dict[str, tuple[Any, str, int]] = {
    "client table": (client_table, "write_rows", 5),
    "journal": (journal, "commit_step", 6),
    "checkpoint": (checkpoint, "rename_checkpoint", 5),
    "tracking": (MlflowTracker, "observe", 6),
    "training": (LocalTrainer, "begin_client_hooks", 28),
}


def points() -> list[tuple[str, int, bool]]:
    """Return (moment, number of the call, whether the kill comes before the call)."""
    rng = np.random.default_rng(20)
    calls = {moment: int(rng.integers(n_calls)) + 1 for moment, (_, _, n_calls) in MOMENTS.items()}
    kill_points = [(moment, call, i % 2 == 0) for i, (moment, call) in enumerate(calls.items())]
    return [*kill_points, ("checkpoint", calls["checkpoint"], False)]


@pytest.fixture(autouse=True)
def _fork_followers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fork_followers(monkeypatch)
    yield
    if MlflowTracker._follower is not None:
        MlflowTracker._follower.kill()


@pytest.fixture(scope="module")
def uninterrupted_result(tmp_path_factory: pytest.TempPathFactory) -> tuple[FinishedRun, dict[str, dict[int, float]]]:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "mlflow.db").write_bytes(database_template())
    trained_run = run_training(folder, *OVERRIDES, *QUIET)
    return trained_run, read_tracked_metrics(folder)


def read_tracked_metrics(logs: Path) -> dict[str, dict[int, float]]:
    """Return each metric of the newest MLflow run by step; fail if a step occurs twice."""
    client = MlflowClient(f"sqlite:///{logs / 'mlflow.db'}")
    experiment = not_none(client.get_experiment_by_name("fedcohort"))
    runs = [r for r in client.search_runs([experiment.experiment_id]) if r.data.params.get("rounds") == "5"]
    assert len(runs) == 1, "one run, whatever was killed"
    values = {}
    for name in runs[0].data.metrics:
        history = client.get_metric_history(runs[0].info.run_id, name)
        assert len({m.step for m in history}) == len(history), f"{name} is doubled"
        values[name] = {m.step: m.value for m in history}
    assert runs[0].info.status == "FINISHED"
    return values


def killed_at(monkeypatch: pytest.MonkeyPatch, moment: str, call: int, before: bool, work: Callable[[], Any]) -> int:
    owner, name, _ = MOMENTS[moment]
    original, count = getattr(owner, name), {"n": 0}

    def count_call(*args: Any, **kwargs: Any) -> Any:
        count["n"] += 1
        if count["n"] == call and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if count["n"] == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, count_call)
        pid = os.fork()
        if pid == 0:
            try:
                work()
            finally:
                os._exit(0)
        return os.waitpid(pid, 0)[1]


@pytest.mark.parametrize(("moment", "call", "before"), points())
def test_a_killed_run_resumes_with_identical_bits(
    uninterrupted_result: tuple[FinishedRun, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    call: int,
    before: bool,
) -> None:
    (tmp_path / "mlflow.db").write_bytes(database_template())
    status = killed_at(monkeypatch, moment, call, before, lambda: run_training(tmp_path, *OVERRIDES, *QUIET))
    assert os.WIFSIGNALED(status), "the point was never reached"
    resumed = run_training(tmp_path, *OVERRIDES, *QUIET, "resume=true")
    assert same_bits(uninterrupted_result[0], resumed)
    assert history.read_history(resumed.folder).draws == history.read_history(uninterrupted_result[0].folder).draws
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert read_tracked_metrics(tmp_path) == uninterrupted_result[1]


def _wait_for_the_follower(logs: Path) -> None:
    """Wait until the sender has sent all rounds and has ended, which it does when the run's lock is free."""
    (folder,) = (logs / "runs").iterdir()
    end = time.monotonic() + 120
    while not json.loads((folder / "mlflow.json").read_text())["complete"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    client = MlflowClient(f"sqlite:///{logs / 'mlflow.db'}")
    (run,) = client.search_runs([not_none(client.get_experiment_by_name("fedcohort")).experiment_id])
    assert run.info.status == "KILLED"
    steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "test/acc")]
    assert steps == list(history.read_history(folder).steps)


def test_the_command_line_run_resumes_after_a_kill(
    uninterrupted_result: tuple[FinishedRun, Any], tmp_path: Path
) -> None:
    (tmp_path / "mlflow.db").write_bytes(database_template())
    overrides = ["clients=12", "cohort=4", "model=logreg", "client.epochs=2", f"paths.logs={tmp_path}", *OVERRIDES]
    overrides += ["callback.figures=null", "callback.summary=null", "checkpoint.every_s=0"]
    line = [sys.executable, "train.py", *overrides]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    for output_line in process.stdout:
        if output_line.startswith("round 3/"):
            process.kill()
            break
    process.wait()
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    _wait_for_the_follower(tmp_path)
    finished = run_command(*overrides, "resume=true")
    assert finished.returncode == 0
    assert "round 2/" not in finished.stdout, "it began again"
    (folder,) = (tmp_path / "runs").iterdir()
    lines = history.read_history(folder)
    assert lines.steps[-1] == 5
    assert read_tracked_metrics(tmp_path) == uninterrupted_result[1]
    assert time.time() - (folder / "status.json").stat().st_mtime < 600


def test_resuming_a_finished_run_sends_missing_rounds_to_mlflow(
    uninterrupted_result: tuple[FinishedRun, Any], tmp_path: Path
) -> None:
    (tmp_path / "mlflow.db").write_bytes(database_template())
    untracked_overrides = [override for override in OVERRIDES if not override.startswith("logger")]
    run_training(tmp_path, *untracked_overrides, *QUIET)
    assert run_training(tmp_path, *OVERRIDES, *QUIET, "resume=true").reports == []
    assert read_tracked_metrics(tmp_path) == uninterrupted_result[1]


def test_the_functions_at_which_runs_are_killed_exist() -> None:
    """`make hostile KIND=kills` runs outside the suite, and finds these functions by their names."""
    assert [point for point, (owner, name) in POINTS.items() if not callable(getattr(owner, name, None))] == []
