"""`fedcohort sweep` describes a sweep, and cancelling a sweep ends its processes."""

import json
import re
import signal
from pathlib import Path

import pytest

from command_harness import Command
from fedcohort.command import sweep
from fedcohort.errors import DamagedFile, OptionError
from fedcohort.host.lock import try_to_lock
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import SweepJob, SweepPlan
from jobs.test_status import trained_run

JOBS = [["selector=random", "seed=0", "cohort=4"], ["selector=random", "seed=1", "cohort=4"]]


def print_sweep(tmp_path: Path, command_name: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert sweep.main([command_name, "s", f"logs={tmp_path}", *options]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_status_has_counts_failures_and_the_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sweeps" / "s"
    refused = [(["selector=random", "seed=-1", "cohort=4"], "seed must be")]
    sweep_folder.save_plan(folder, SweepPlan([*JOBS, *([job] for job in "abc")], refused))
    assert print_sweep(tmp_path, "status", capsys) == ["sweep s: 5 left, 1 left out (rejected); no process works on it"]
    SweepJob(folder, 0, tuple(JOBS[0]), trained_run(tmp_path / "run", 50, 0.5, 0.625)).write_record("done")
    SweepJob(folder, 1, tuple(JOBS[1])).write_record("failed", reason="why")
    lock = try_to_lock(folder / sweep_folder.SWEEP_LOCK_FILE)
    first, *other_lines = print_sweep(tmp_path, "status", capsys)
    counts, best = "1 done, 1 failed, 3 left, 1 left out (rejected)", "62.5 % (selector=random seed=0 cohort=4)"
    assert first == f"sweep s: {counts}; about 1 s left; best server_val/acc {best}"
    assert other_lines == ["  failed: selector=random seed=1 cohort=4: why"]
    assert lock is not None
    lock.close()
    assert print_sweep(tmp_path, "cancel", capsys)[0].partition("; best")[0].endswith("; no process works on it")
    assert not (folder / sweep_folder.CANCELLED_MARKER_FILE).exists()


def test_invalid_sweep_arguments_are_rejected(tmp_path: Path) -> None:
    for arguments, reason in [
        ([], "type fedcohort sweep status ID"),
        (["stop", "s"], "type fedcohort sweep status ID"),
        (["status", "s", "log=x"], "there is no option 'log'; there are logs"),
        (["cancel", "s", "wait_s=soon"], r"wait_s must be a number in \[0, inf\), got 'soon'"),
        (["status", "last", f"logs={tmp_path}"], r"sweeps holds no sweep: python train.py -m starts one"),
    ]:
        with pytest.raises(OptionError, match=reason):
            sweep.main(arguments)
    sweep_folder.save_plan(tmp_path / "sweeps" / "a", SweepPlan(host="another"))
    with pytest.raises(OptionError, match=r"sweeps: a, got 'lst'; did you mean last\?"):
        sweep.main(["status", "lst", f"logs={tmp_path}"])
    (tmp_path / "sweeps" / "b").mkdir()
    (tmp_path / "sweeps" / "b" / sweep_folder.SWEEP_PLAN_FILE).write_text('{"host": "an')
    with pytest.raises(DamagedFile, match=r"sweeps/b/sweep.json is damaged: restore it, or remove .*sweeps/b"):
        sweep.main(["status", "last", f"logs={tmp_path}"])
    lock = try_to_lock(tmp_path / "sweeps" / "a" / sweep_folder.SWEEP_LOCK_FILE)
    assert lock is not None
    with pytest.raises(OptionError, match="sweep a was started on another: cancel it there"):
        sweep.main(["cancel", "a", f"logs={tmp_path}"])


def test_a_damaged_record_of_a_job_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "sweeps" / "a"
    sweep_folder.save_plan(folder, SweepPlan(host="another"))
    (folder / "jobs").mkdir()
    for damaged_text in ('{"number": 0, "wo', '{"number": 0}', "[]"):
        (folder / "jobs" / "0.json").write_text(damaged_text)
        with pytest.raises(DamagedFile, match=r"sweeps/a/jobs/0.json is damaged: restore it from a copy, or remove it"):
            sweep.main(["status", "a", f"logs={tmp_path}"])


@pytest.mark.parametrize(("last_signal", "killed"), [("TERM", []), ("never", ["12"])])
def test_slurm_jobs_get_a_signal_and_then_are_killed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    last_signal: str,
    killed: list[str],
) -> None:
    folder = tmp_path / "sweeps" / "s"
    sweep_folder.save_plan(folder, SweepPlan(JOBS, launcher="hydra_plugins.fedcohort.Slurm"))
    for name in ("12", "12_0", "12_1", "9_0"):
        (folder / ".submitit" / name).mkdir(parents=True)
    (tmp_path / "queue").write_text("12_1\n7\n")
    script = f'echo "$@" >> {tmp_path}/typed; case "$*" in 12|*{last_signal}*) echo 7 > {tmp_path}/queue; esac'
    for name, text in (("squeue", f"cat {tmp_path}/queue"), ("scancel", script)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    SweepJob(folder, 0, tuple(JOBS[0]), trained_run(tmp_path / "run", 32, 0.5, 0.625)).write_record("running")
    assert print_sweep(tmp_path, "status", capsys)[0].startswith("sweep s: 1 running, 1 left"), "the cluster has it"
    waiting, first, *lines = print_sweep(tmp_path, "cancel", capsys, "wait_s=0")
    assert waiting == "waiting for the jobs to finish their round, at most 0 s"
    assert first == "sweep s: 1 stopped, 1 left; no process works on it"
    assert lines[0] == "  seed=0: cancelled by you, 32 of 50 rounds; resume=true continues"
    first_calls = ["--state=PENDING 12", "--state=RUNNING --signal=TERM 12"]
    assert (tmp_path / "typed").read_text().splitlines() == [*first_calls, *killed]
    assert len(lines) == 1 + len(killed)


def test_a_cancelled_sweep_saves_its_round_and_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = ("seed=0,1", "rounds=20000", "clients=12", "cohort=4", "model=logreg", "client.epochs=1", "logger=none")
    quiet = ("callback.figures=null", "callback.summary=null")
    running = Command("-m", *overrides, *quiet, f"paths.logs={tmp_path}")
    running.wait_for("round 1/20000")
    (id,) = (path.name for path in (tmp_path / "sweeps").iterdir())
    assert sweep.main(["status", id, f"logs={tmp_path}"]) == 0
    assert capsys.readouterr().out.startswith(f"sweep {id}: 1 running, 1 left")
    assert sweep.main(["cancel", id, f"logs={tmp_path}", "wait_s=100"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"\n  seed=0: cancelled by you, \d+ of 20000 rounds; resume=true continues\n$", output)
    process = running.finish()
    assert process.returncode == 128 + signal.SIGTERM
    assert "job 1 of 2\n" in process.stderr
    assert "resume with: the command of the sweep with resume=true" in process.stderr
    assert "Traceback" not in process.stderr
    (path,) = (tmp_path / "runs").iterdir()
    assert json.loads((path / "status.json").read_text())["status"] == "interrupted"
    expected_files = {"cancelled", "jobs", "multirun.yaml", "sweep.json", "sweep.lock"}
    assert {file.name for file in (tmp_path / "sweeps" / id).iterdir()} <= expected_files, (
        "what a job writes is elsewhere"
    )
    assert json.loads((tmp_path / "sweeps" / id / "jobs" / "0.json").read_text())["how"] == "stopped"
    assert sweep.main(["status", "last", f"logs={tmp_path}"]) == 0
    assert output.endswith(capsys.readouterr().out)
