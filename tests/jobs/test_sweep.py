"""Sweeps from the command line: one bad job costs nothing but itself, and `resume=true` does what is left."""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from command_harness import FinishedCommand, run_command
from config_options import ROOT
from fedcohort.command.compare import parse_options
from fedcohort.record.observer import Observer
from fedcohort.startup.comparison import compare_tracked_runs
from run_harness import run_training
from tracking.databases import captured_log, database_template  # noqa: F401

SMALL = ["clients=12", "rounds=2", "model=logreg", "client.epochs=1", "callback=none", "logger=none"]
TRACKED = ("callback=default", "callback.figures=null", "logger=mlflow")


def train(logs: Path, *overrides: str) -> FinishedCommand:
    names = {override.split("=")[0] for override in overrides}
    base = [override for override in SMALL if override.split("=")[0] not in names]
    return run_command(*overrides, *base, f"paths.logs={logs}")


def count_finished_runs(logs: Path) -> int:
    statuses = [json.loads(path.read_text())["status"] for path in (logs / "runs").glob("*/status.json")]
    return statuses.count("finished")


def test_a_failed_job_is_reported_and_the_other_jobs_continue(tmp_path: Path) -> None:
    before = {path.name for path in ROOT.iterdir()}
    process = train(tmp_path, "-m", "cohort=4", "split.limit=3,null")
    assert process.returncode == 1
    assert count_finished_runs(tmp_path) == 1
    assert process.stderr.count("clients=12 needs 36 training samples") == 2, "when it fails, and at the end"
    assert "failed: " in process.stderr
    assert "Traceback" not in process.stderr
    (sweep,) = (path.name for path in (tmp_path / "sweeps").iterdir())
    assert process.stderr.endswith(f"\nsweep {sweep}: 1 done, 1 failed.\n")
    repeat = train(tmp_path, "-m", "cohort=4,5,40", "resume=true", "sweep.skip_refused=true")
    assert repeat.returncode == 0
    assert count_finished_runs(tmp_path) == 2
    assert repeat.stderr.count("already finished") == 1
    assert "nothing to resume" not in repeat.stderr, "a job that is left begins, as in any sweep"
    assert "1 of 3 jobs left out:\n  job 3 (cohort=40): cohort=40 exceeds clients=12: lower cohort\n" in repeat.stderr
    assert repeat.stderr.endswith(": 1 done, 1 skipped (finished before), 1 left out (rejected).\n")
    assert {path.name for path in ROOT.iterdir()} == before, "nothing is left in the working directory"


def test_the_error_of_a_crashed_job_names_file_line_and_log(tmp_path: Path) -> None:
    """`fedcohort sweep status` says the same, hours later, of whichever launcher's jobs."""
    process = train(
        tmp_path, "-m", "cohort=4", "+callback.halt._target_=host.test_slurm.Halt", "+callback.halt.after=1"
    )
    assert process.returncode == 1
    (log,) = (tmp_path / "runs").glob("*/run.log")
    (path,) = (tmp_path / "sweeps").glob("*/jobs/0.json")
    reason = json.loads(path.read_text())["reason"]
    assert re.fullmatch(rf"RuntimeError: the node died \(.*/host/test_slurm\.py:\d+\); log: {log}", reason)
    assert f": {reason}\n" in process.stderr
    assert log.read_text().endswith("RuntimeError: the node died\n")


def test_a_local_sweep_reports_each_failure_and_finishes_its_other_jobs(tmp_path: Path) -> None:
    """One job fails, and one takes its process with it."""
    kill = "+callback.die._target_=process_kills.no,process_kills.ExitingObserver"
    process = train(tmp_path, "-m", "hydra/launcher=local", "cohort=4", kill)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    (sweep,) = (path.name for path in (tmp_path / "sweeps").iterdir())
    *_, failure_line, killed, counts = process.stderr.splitlines()
    assert failure_line.endswith("'process_kills' is not a package")
    assert "its process was ended with exit code 9" in killed
    assert counts == f"sweep {sweep}: 2 failed."


class Threads(Observer):
    """An observer that notes in the run's folder how many threads libraries may take in its process."""

    def start(self, info: Any) -> None:
        (info.folder / "threads").write_text(os.environ["OMP_NUM_THREADS"])


def test_parallel_jobs_have_one_thread_each_and_the_bits_of_a_single_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    overrides = ("selector=flash", "cohort=4", "callback=default", "callback.figures=null", "callback.progress=null")
    callback_option = "+callback.threads._target_=jobs.test_sweep.Threads"
    sweep = ("-m", "hydra/launcher=local", "hydra.launcher.n_jobs=2", "seed=0,1")
    process = train(tmp_path, *sweep, *overrides, callback_option)
    assert process.returncode == 0, process.stderr
    assert process.stderr.splitlines()[-1].startswith("sweep ")
    assert process.stderr.splitlines()[-1].endswith(": 2 done.")
    for seed in (0, 1):
        (folder,) = (tmp_path / "runs").glob(f"*-s{seed}")
        assert (folder / "threads").read_text() == "1"
        separate_run = run_training(
            tmp_path / "alone", *SMALL[:5], *overrides[:2], f"seed={seed}", "logger=none", small=False
        )
        assert json.loads((folder / "summary.json").read_text())["fingerprint"] == separate_run.last.fingerprint


def test_a_sweep_ends_with_the_command_that_compares_it(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(database_template())
    process = train(tmp_path, "-m", "selector=random,flash", "cohort=4", "rounds=1", *TRACKED)
    (sweep,) = (path.name for path in (tmp_path / "sweeps").iterdir())
    counts, report, verdict = process.stderr.splitlines()[-3:]
    assert verdict.endswith("a verdict needs 3.")
    assert report == f"report: {tmp_path / 'sweeps' / sweep / 'report' / 'report.html'}"
    summary, _, line = counts.partition(" Compare them: ")
    assert summary == f"sweep {sweep}: 2 done."
    arguments = shlex.split(line)[1:]
    tracking_option = f"tracking_uri=sqlite:///{tmp_path / 'mlflow.db'}"
    assert arguments == ["compare", f"sweep={sweep}", "rows=selector", "baseline=random", tracking_option]
    options = parse_options(arguments[1:])
    assert ("", "flash") in compare_tracked_runs(options.query, options.question).matching.cells
