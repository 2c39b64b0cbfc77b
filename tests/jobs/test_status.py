"""The status of a sweep is read from its files only."""

import json
import logging
import sys
import time
from pathlib import Path

import pytest

from fedcohort.host.lock import try_to_lock
from fedcohort.jobs import status
from fedcohort.jobs.status import SweepStatus, describe_next_job, read_sweep_status
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import JobRecord, SweepJob, SweepPlan


def trained_run(folder: Path, rounds_done: int, *validation: float) -> Path:
    """The folder of a run of 50 rounds that has done some, with its validation accuracies from step 0 on."""
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"rounds_done": rounds_done, "rounds": 50}))
    step = {"time_ms": 0, "trace": {}, "fingerprint": "", "cohort": [], "arrived": []}
    lines = [json.dumps({**step, "step": n, "metrics": {status.BEST_METRIC: v}}) for n, v in enumerate(validation)]
    (folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_time_left_follows_from_median_duration_remaining_work_and_parallel_jobs(tmp_path: Path) -> None:
    """Jobs took 10 and 30 s, 20 in the median; a fifth of one job is done, none of another that has run for 5 s.

    Of them .8 * 20 + (20 - 5) s are left, of the three that haven't begun 60: 91 s of work, for two at a time.
    """
    records = {
        0: JobRecord(("seed=0",), "done", None, "", 0.0, 10.0),
        1: JobRecord(("seed=1",), "done", None, "", 10.0, 40.0),
        2: JobRecord(("seed=2",), "running", trained_run(tmp_path / "two", 10), "", 90.0),
        3: JobRecord(("seed=3",), "running", None, "", 95.0),
        4: JobRecord(("seed=4",), "skipped", None, "", 40.0, 40.1),
    }
    plan = SweepPlan([[f"seed={n}"] for n in range(8)])
    status = SweepStatus(plan, records, is_live=True)
    assert status.n_waiting_jobs == 3
    assert status.count_jobs("done", "skipped") == 3
    assert status.seconds_left(100.0) == pytest.approx(91 / 2)
    # without one that is done: 10 s were a fifth of a job, so that a job takes 50
    early_status = SweepStatus(plan, {n: records[n] for n in (2, 3)}, is_live=True)
    assert early_status.seconds_left(100.0) == pytest.approx((0.8 * 50 + 45 + 6 * 50) / 2)
    assert SweepStatus(plan, {3: records[3]}, is_live=True).seconds_left(100.0) is None
    old = JobRecord(("seed=0",), "done")
    assert SweepStatus(plan, {0: old}, is_live=True).seconds_left(100.0) is None, "of an older fedcohort"


def test_the_opening_line_of_a_job_has_its_number_and_the_time_left(tmp_path: Path) -> None:
    plan = SweepPlan([(f"seed={n}",) for n in range(18)])
    assert describe_next_job(tmp_path, plan, 0) == "job 1 of 18"
    SweepJob(tmp_path, 0, ("seed=0",), began=time.time() - 2400.0 / 17).write_record("done")
    assert describe_next_job(tmp_path, plan, 1) == "job 2 of 18, about 40 min left"


def test_the_best_job_has_the_best_last_validation_of_all_finished_jobs(tmp_path: Path) -> None:
    nan = float("nan")
    source = {"low": (0.9, 0.4), "high": (0.5, 0.6), "broken": (0.5, nan), "unmeasured": (0.95,), "going": (0.1, 0.99)}
    states = {"going": "running", "high": "skipped"}
    records = {
        n: JobRecord((name,), states.get(name, "done"), trained_run(tmp_path / name, 50, *values))
        for n, (name, values) in enumerate(source.items())
    }
    best = SweepStatus(SweepPlan(), records, is_live=True).find_best_job()
    assert best is not None
    assert (best[0], best[1].words) == (0.6, ("high",))
    assert SweepStatus(SweepPlan(), {4: records[4]}, is_live=True).find_best_job() is None


def test_a_running_record_without_a_process_counts_as_killed(tmp_path: Path) -> None:
    plan = SweepPlan([["seed=0"], ["seed=1"]], [])
    sweep_folder.save_plan(tmp_path, plan)
    assert sweep_folder.read_plan(tmp_path) == plan
    run = trained_run(tmp_path / "run", 10)
    SweepJob(tmp_path, 0, ("seed=0",), run).write_record("running")
    lock = try_to_lock(tmp_path / sweep_folder.SWEEP_LOCK_FILE)
    assert lock is not None
    assert read_sweep_status(tmp_path, plan).records[0].how == "running"
    lock.close()
    assert read_sweep_status(tmp_path, plan).records[0].how == "failed"
    assert read_sweep_status(tmp_path, plan, is_live=True).records[0].how == "running", "SLURM has it"
    with try_to_lock(run / "run.lock") or run.open() as _:
        assert read_sweep_status(tmp_path, plan).records[0].how == "running", "a worker lives on"
    assert sweep_folder.read_plan(tmp_path / "elsewhere") is None


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_live_line_has_job_counts_and_the_best_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    """It is rewritten on a terminal; a log has one line for each change."""
    lines = list[str]()
    monkeypatch.setattr(status, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setattr(logging.getLogger("fedcohort"), "info", lambda text, *values: lines.append(text % values))
    sweep = tmp_path / "s"
    sweep_folder.save_plan(sweep, SweepPlan([["seed=0"], ["seed=1"]]))
    SweepJob(sweep, 0, ("seed=0",), trained_run(tmp_path / "run", 50, 0.5, 0.625)).write_record("done")
    with status.show_live_line(sweep):
        time.sleep(0.3)
    line = "sweep s: 1 done, 1 left; about 1 s left; best server_val/acc 62.5 % (seed=0)"
    assert lines == ([] if is_terminal else [line])
    text = capsys.readouterr().err
    assert (f"{status.CLEAR_LINE_CODE}{line}" in text) == is_terminal
    assert not is_terminal or text.endswith(status.CLEAR_LINE_CODE)
