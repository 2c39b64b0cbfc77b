"""A job that SLURM starts again resumes: how its environment is read, then on a real cluster.

The cluster may be this machine only: `tests/start_slurm.sh` makes one of it.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config_options import ROOT
from fedcohort.host import slurm
from fedcohort.record.folder import read_status
from fedcohort.record.observer import Observer
from run_harness import run_training, same_bits

VARIABLES = ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_RESTART_COUNT")
PATIENCE_S = 240


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_variables(*values: str) -> None:
        for name, value in zip(VARIABLES, values, strict=True):
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)

    set_variables("", "", "", "")
    return set_variables


@pytest.mark.parametrize(
    ("values", "job", "restarted"),
    [
        (("", "", "", ""), None, None),
        (("7", "", "", ""), "7", None),
        (("7", "", "", "0"), "7", None),
        (("7", "", "", "2"), "7", "7"),
        (("7", "5", "1", "1"), "5_1", "5_1"),
        (("7", "5", "1", "many"), "5_1", None),
        (("", "", "", "1"), None, None),
    ],
)
def test_the_job_is_identified_by_its_environment(
    environment: Callable[..., None], values: tuple[str, ...], job: str | None, restarted: str | None
) -> None:
    environment(*values)
    assert (slurm.read_job_id(), slurm.find_restarted_job()) == (job, restarted)


def test_a_restarted_job_resumes(tmp_path: Path, environment: Callable[..., None]) -> None:
    """A restarted job resumes in its own folder, although another job ran the same options; bits are equal."""
    stop = ("+callback.halt._target_=host.test_slurm.Halt", "+callback.halt.after=2")
    environment("7", "", "", "")
    with pytest.raises(RuntimeError, match="the node died"):
        run_training(tmp_path, "rounds=4", *stop)
    environment("8", "", "", "")
    other_run = run_training(tmp_path, "rounds=4")
    environment("7", "", "", "1")
    repeat = run_training(tmp_path, "rounds=4")
    assert repeat.folder != other_run.folder
    assert read_status(repeat.folder)["slurm_job"] == "7"
    assert [report.step for report in repeat.reports] == [3, 4], "it did not begin again"
    assert same_bits(repeat, other_run)
    assert len(list((tmp_path / "runs").iterdir())) == 2


class Halt(Observer):
    """An observer whose process ends after a round."""

    def __init__(self, after: int) -> None:
        self.after = after

    def start(self, info: object) -> None: ...

    def observe(self, report: object) -> None:
        if getattr(report, "step", 0) > self.after:
            raise RuntimeError("the node died")

    def finish(self, status: str) -> None: ...


JOB = (
    "JobId=7 JobName=train\n   JobState={} Reason=None\n   Requeue={} Restarts=0\n   PreemptTime={} SuspendTime=None\n"
)


@pytest.mark.parametrize(
    ("state", "requeue_flag", "preempt_time", "is_requested"),
    [
        ("RUNNING", "1", "2026-01-02T03:04:05", True),
        ("SIGNALING", "1", "2026-01-02T03:04:05", True),
        ("RUNNING", "1", "None", False),  # a signal by hand
        ("RUNNING", "0", "2026-01-02T03:04:05", False),  # sbatch --no-requeue
        ("CANCELLED", "1", "2026-01-02T03:04:05", False),  # scancel
        ("COMPLETING", "1", "None", False),  # scontrol requeue: SLURM has it in hand
    ],
)
def test_a_preempted_job_requests_a_requeue(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: Callable[..., None],
    state: str,
    requeue_flag: str,
    preempt_time: str,
    is_requested: bool,
) -> None:
    answer = JOB.format(state, requeue_flag, preempt_time)
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\ncat <<.\n{answer}.\n')
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    slurm.requeue_if_preempted()
    assert not (tmp_path / "asked").exists(), "no job of SLURM's"
    environment("7", "", "", "")
    slurm.requeue_if_preempted()
    assert (tmp_path / "asked").read_text().splitlines() == ["show job 7", *(["requeue 7"] if is_requested else [])]


def cluster() -> str:
    """Return the reason why no cluster can be used, or "" if one responds."""
    if importlib.util.find_spec("submitit") is None:
        return "submitit is not installed: the extra slurm brings it"
    if shutil.which("sbatch") is None:
        return "sbatch is not on the PATH"
    process = subprocess.run(["sinfo", "--noheader", "--format=%t"], capture_output=True, text=True, check=False)
    if not re.search(r"^(idle|mix)", process.stdout, re.MULTILINE):
        return "no SLURM cluster with a free node answers: tests/start_slurm.sh makes one of this machine"
    return ""


def wait_for(is_done: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """A cluster takes its time."""
    end = time.monotonic() + PATIENCE_S
    while not is_done():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the cluster took too long"
        time.sleep(0.2)


def test_a_requeued_job_of_a_real_cluster_is_bit_identical(tmp_path: Path) -> None:
    """Signals, the queue, a second start in another process; the failure of another job reaches the exit code."""
    if skip_reason := cluster():
        pytest.skip(skip_reason)
    overrides = ["clients=12", "rounds=300", "model=logreg", "client.epochs=1", "logger=none", "checkpoint.every_s=0"]
    overrides += ["callback.figures=null", "callback.summary=null", "callback.progress=null"]
    launcher = ["hydra/launcher=slurm", "hydra.launcher.mem_gb=1", "hydra.launcher.cpus_per_task=1"]
    command = [
        sys.executable,
        "train.py",
        "-m",
        *launcher,
        "cohort=4",
        "split.limit=null,3",
        *overrides,
        f"paths.logs={tmp_path}",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "runs"
    wait_for(lambda: any(read_status(path).get("rounds_done", 0) > 2 for path in runs.glob("*")), process)
    (folder,) = runs.iterdir()
    job = read_status(folder)["slurm_job"]
    subprocess.run(["scontrol", "requeue", job], check=True)
    wait_for(lambda: "PENDING" in run("squeue", "--noheader", "--format=%T", f"--jobs={job}"), process)
    # without a start time the job waits two minutes, until its credential is void
    run("scontrol", "update", f"jobid={job}", "StartTime=now")
    _, output = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert output.splitlines()[-1].endswith(": 1 done, 1 failed.")
    assert list(runs.iterdir()) == [folder]
    log = (folder / "run.log").read_text()
    assert re.search(r"resuming .* after round [1-9]", log)
    full_run = run_training(tmp_path / "alone", "cohort=4", *overrides, "callback=default", small=False)
    last = json.loads((folder / "journal.jsonl").read_text().splitlines()[-1])
    assert (last["step"], last["fingerprint"]) == (300, full_run.last.fingerprint)


def test_jobs_of_an_ended_sweep_continue_until_cancelled(tmp_path: Path) -> None:
    """TERM ends the process that waits, which names them; `fedcohort sweep` finds them all the same, and ends them."""
    if skip_reason := cluster():
        pytest.skip(skip_reason)
    overrides = ["clients=12", "cohort=4", "rounds=200000", "model=logreg", "client.epochs=1", "logger=none"]
    overrides += ["callback.figures=null", "callback.summary=null", "callback.progress=null", "seed=0,1"]
    launcher = ["hydra/launcher=slurm", "hydra.launcher.mem_gb=1", "hydra.launcher.cpus_per_task=1"]
    command = [sys.executable, "train.py", "-m", *launcher, *overrides, f"paths.logs={tmp_path}"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "runs"
    wait_for(lambda: sum(read_status(path).get("rounds_done", 0) > 0 for path in runs.glob("*")) == 2, process)
    process.terminate()
    _, output = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    (job,) = re.findall(r"^the jobs continue without this process; `scancel (\d+)` ends them$", output, re.MULTILINE)
    (id,) = (path.name for path in (tmp_path / "sweeps").iterdir())
    sweep = [sys.executable, "-m", "fedcohort", "sweep"]
    assert run(*sweep, "status", id, f"logs={tmp_path}").startswith(f"sweep {id}: 2 running; about ")
    waiting, *status_lines = run(*sweep, "cancel", id, f"logs={tmp_path}", f"wait_s={PATIENCE_S}").splitlines()
    assert waiting.startswith("waiting for the jobs to finish their round")
    assert status_lines[0] == f"sweep {id}: 2 stopped; no process works on it"
    assert all(re.search(r"cancelled by you, \d+ of 200000 rounds; resume=true", line) for line in status_lines[1:])
    assert not run("squeue", "--noheader", f"--jobs={job}").strip()
    assert run(*sweep, "status", id, f"logs={tmp_path}").splitlines() == status_lines
    assert {read_status(path)["status"] for path in runs.iterdir()} == {"interrupted"}


def test_two_tasks_on_one_node_train_no_run_twice(tmp_path: Path) -> None:
    if skip_reason := cluster():
        pytest.skip(skip_reason)
    command = [*("srun", "--ntasks=2", "--ntasks-per-node=2", "--overcommit", sys.executable, "train.py")]
    command += ["rounds=1", "model=logreg", "trainer.devices=2", "logger=none", f"paths.logs={tmp_path / 'logs'}"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.stderr.count("srun started 2 processes") == 2
    assert not (tmp_path / "logs").exists()


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
