"""The status of a sweep, read from its folder and those of its runs: counts, time left and the best job."""

import logging
import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort import units
from fedcohort.host.lock import is_locked
from fedcohort.jobs import cluster
from fedcohort.jobs.job import read_last_metric_value
from fedcohort.jobs.time_left import WallTimeEstimate
from fedcohort.record import sweep_folder
from fedcohort.record.folder import describe_log, read_status
from fedcohort.record.sweep_folder import JobRecord, SweepPlan
from fedcohort.report.render import render

log = logging.getLogger("fedcohort")
KILLED_MESSAGE = "its process was killed (kill -9, or the kernel for lack of memory)"
BEST_METRIC = "server_val/acc"  # nothing is chosen by the test set
# seconds between two looks of the live line, and the share of time that they may take
POLL_INTERVAL_S, MAX_POLL_SHARE = (1.0, 0.02)
CLEAR_LINE_CODE = "\r\x1b[K"  # back to the start of the line, which is cleared


@dataclass(frozen=True)
class SweepStatus:
    """The status of a sweep.

    Attributes:
        plan: the jobs of the sweep.
        records: records of the jobs that have begun, by number.
        is_live: whether a process or SLURM still runs the jobs.
    """

    plan: SweepPlan
    records: Mapping[int, JobRecord]
    is_live: bool

    def count_jobs(self, *job_states: str) -> int:
        """Return how many jobs are in one of the states `job_states`."""
        return sum(record.how in job_states for record in self.records.values())

    @property
    def n_waiting_jobs(self) -> int:
        """Number of jobs that have not begun."""
        return max(0, len(self.plan.jobs) - len(self.records))

    def seconds_left(self, now_s: float) -> float | None:
        """Return the estimated seconds until all jobs are done; None if no job is done or has completed a round.

        The time of a job is estimated from done jobs with other seeds, else with its selector, else from all. Without a
        done job, the progress of running jobs is used. As many jobs as run now are expected to run at the same time.

        Args:
            now_s: current time, in seconds since 1970.
        """
        time_estimate = WallTimeEstimate(_list_similar_job_groups)
        running_jobs = [record for record in self.records.values() if record.how == "running"]
        completed_shares = {record.words: _compute_completed_share(record) for record in running_jobs}
        done_records = [record for record in self.records.values() if record.how == "done" and record.began is not None]
        for record in done_records or running_jobs:
            if record.began is not None and (done_share := completed_shares.get(record.words, 1.0)) > 0:
                time_estimate.add_run(record.words, ((record.ended or now_s) - record.began) / done_share)
        if not time_estimate.has_estimate:
            return None
        waiting_jobs = [tuple(words) for n, words in enumerate(self.plan.jobs) if n not in self.records]
        remaining_s = time_estimate.estimate_seconds(waiting_jobs)
        for record in running_jobs:
            expected_s, done_share = time_estimate.estimate_seconds([record.words]), completed_shares[record.words]
            seconds_of_running = (
                expected_s * (1 - done_share) if done_share else expected_s - (now_s - (record.began or now_s))
            )
            remaining_s += max(0.0, seconds_of_running)
        return remaining_s / max(1, len(running_jobs))

    def find_best_job(self) -> tuple[float, JobRecord] | None:
        """Return the highest last validation accuracy of the jobs that are done, and its job; None if none has one."""
        best_job: tuple[float, JobRecord] | None = None
        for record in self.records.values():
            if record.how in ("done", "skipped") and record.folder is not None:
                accuracy = read_last_metric_value(record.folder, BEST_METRIC)
                if accuracy is not None and math.isfinite(accuracy) and (best_job is None or accuracy > best_job[0]):
                    best_job = accuracy, record
        return best_job


def read_sweep_status(sweep: Path, plan: SweepPlan, *, is_live: bool = False) -> SweepStatus:
    """Return the status of a sweep.

    Args:
        sweep: folder of the sweep.
        plan: the jobs of the sweep.
        is_live: whether a process or SLURM is known to run its jobs; otherwise this is looked up.
    """
    is_live = is_live or is_locked(sweep / sweep_folder.SWEEP_LOCK_FILE) or bool(cluster.list_queued_array_ids(sweep))
    record_by_number = dict(sweep_folder.read_job_records(sweep))
    for job_number, record in record_by_number.items() if not is_live else ():
        is_run_locked = record.folder is not None and is_locked(record.folder / "run.lock")
        if record.how == "running" and not is_run_locked:  # no process waits for the job or has its run open
            stopped_record = replace(record, how="stopped")
            record_by_number[job_number] = stopped_record if is_cancelled(sweep) else mark_killed_job_as_failed(record)
    return SweepStatus(plan, record_by_number, is_live)


def describe_counts(sweep_status: SweepStatus) -> str:
    """Return the numbers of jobs in `sweep_status` by state, such as `3 done, 2 running, 13 left`."""
    return render("sweep_counts.txt.j2", status=sweep_status).strip()


def describe_sweep(sweep_name: str, sweep_status: SweepStatus) -> str:
    """Return one line on the sweep `sweep_name` from `sweep_status`: numbers of jobs by state, time left, best job."""
    jobs, best = sweep_status.plan.jobs or [record.words for record in sweep_status.records.values()], None
    if (best_value_and_job := sweep_status.find_best_job()) is not None:
        overrides_text = list_varying_overrides(jobs, best_value_and_job[1].words)
        best = f"{BEST_METRIC} {units.format_percent(best_value_and_job[0])} ({overrides_text})"
    seconds_left = sweep_status.seconds_left(time.time()) if sweep_status.is_live else None
    return render("sweep_status.txt.j2", name=sweep_name, status=sweep_status, seconds=seconds_left, best=best).strip()


def is_cancelled(sweep: Path) -> bool:
    """Return whether `fedcohort sweep cancel` has ended the sweep in the folder `sweep`."""
    return (sweep / sweep_folder.CANCELLED_MARKER_FILE).exists()


def describe_next_job(sweep: Path, plan: SweepPlan, job_number: int) -> str:
    """Return a line such as `job 7 of 18, about 40 min left` for a job that begins.

    Args:
        sweep: folder of the sweep.
        plan: the jobs of the sweep.
        job_number: number of the job, from 0.
    """
    seconds_left = SweepStatus(plan, sweep_folder.read_job_records(sweep), is_live=True).seconds_left(time.time())
    time_left_text = "" if seconds_left is None else f", about {units.format_rough_seconds(seconds_left)} left"
    return f"job {job_number + 1} of {len(plan.jobs)}{time_left_text}"


def log_failed_jobs(job_records: Iterable[JobRecord]) -> None:
    """Log the failed jobs in `job_records` again after the last job, as earlier messages may have scrolled away."""
    for record in job_records:
        if record.how == "failed":
            log.error("failed: %s: %s", " ".join(record.words), record.reason)


def list_varying_overrides(overrides_by_job: Sequence[Sequence[str]], overrides: Sequence[str]) -> str:
    """Return the overrides of a job that not all jobs of its sweep have; all of them if the sweep has one job.

    Args:
        overrides_by_job: overrides of each job of the sweep.
        overrides: overrides of the job.
    """
    common_overrides = (
        set.intersection(*(set(other_overrides) for other_overrides in overrides_by_job))
        if len(overrides_by_job) > 1
        else set()
    )
    return " ".join(override for override in overrides if override not in common_overrides)


def mark_killed_job_as_failed(record: JobRecord) -> JobRecord:
    """Return `record`, of a job whose process was killed, as failed and with the reason."""
    return replace(record, how="failed", reason=f"{KILLED_MESSAGE}{describe_log(record.folder)}")


def _list_similar_job_groups(overrides: Sequence[str]) -> tuple[object, ...]:
    """Return the keys of the groups of jobs to which a job with `overrides` belongs, the group most like it first.

    The groups are the jobs that differ from it only in the seed, the jobs of its selector, and all jobs.
    """
    selector_overrides = [override for override in overrides if override.startswith("selector=")]
    return tuple(override for override in overrides if not override.startswith("seed=")), str(selector_overrides), ()


def _compute_completed_share(record: JobRecord) -> float:
    """Return the share of its rounds that the job of `record` has done, in [0, 1]."""
    run_status = read_status(record.folder) if record.folder is not None else {}
    return float(min(1.0, run_status.get("rounds_done", 0) / max(1, run_status.get("rounds", 1))))


@contextmanager
def show_live_line(sweep: Path) -> Iterator[None]:
    """Return a context manager that shows the status of the sweep in the folder `sweep` in one line while it runs.

    The line is rewritten on a terminal, else printed when it changes.
    """
    stop_event = threading.Event()
    line_thread = threading.Thread(target=_watch_sweep, args=(sweep, stop_event), name="live line", daemon=True)
    line_thread.start()
    try:
        yield
    finally:
        stop_event.set()
        line_thread.join()


def _watch_sweep(sweep: Path, stop_event: threading.Event) -> None:
    plan, is_terminal, last_counts_text, pause_s = (
        sweep_folder.read_plan(sweep),
        sys.stderr.isatty(),
        "",
        POLL_INTERVAL_S,
    )
    while plan is not None and not stop_event.wait(pause_s):
        poll_start_s = time.monotonic()
        sweep_status = read_sweep_status(sweep, plan, is_live=True)
        counts_text = describe_counts(sweep_status)
        if is_terminal:
            sys.stderr.write(f"{CLEAR_LINE_CODE}{describe_sweep(sweep.name, sweep_status)[:200]}")
            sys.stderr.flush()
        elif counts_text != last_counts_text and sweep_status.count_jobs("done", "failed", "skipped"):
            log.info("%s", describe_sweep(sweep.name, sweep_status))
        last_counts_text, pause_s = (
            counts_text,
            max(POLL_INTERVAL_S, (time.monotonic() - poll_start_s) / MAX_POLL_SHARE),
        )
    if is_terminal and last_counts_text:
        sys.stderr.write(CLEAR_LINE_CODE)
