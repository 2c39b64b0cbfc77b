"""SLURM jobs: the id of this process's job, restarts, preemption, and the jobs in the queue.

SLURM requeues a job if its node fails, if an administrator asks for it, or if another job preempts it. The job starts
again with the same command, in the same environment except for `SLURM_RESTART_COUNT`.
"""

import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence

log = logging.getLogger("fedcohort")
ACTIVE_STATES = ("RUNNING", "SIGNALING")
POLL_S, KILL_S = 1.0, 60.0  # seconds between two queries for jobs, and until killed jobs must have ended


def current_job_id() -> str | None:
    """Return the id of this job, such as `12`, or `12_3` for a task of an array; None outside of SLURM."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID") or None


def find_restarted_job() -> str | None:
    """Return the id of this job if SLURM has started it before, None at its first start."""
    restarts = os.environ.get("SLURM_RESTART_COUNT", "")
    return current_job_id() if restarts.isdecimal() and int(restarts) > 0 else None


def requeue_if_preempted() -> None:
    """Requeue this job if SLURM preempts it with a grace period.

    SLURM only requeues jobs that it has to kill; a job that saves its state and ends within the grace period counts as
    completed. A cancelled job is not in a state of `ACTIVE_STATES`, and stays cancelled.
    """
    job_id = current_job_id()
    if os.environ.get("SLURM_PROCID", "0") != "0":  # only the job's first task requeues it
        return
    if job_id is None or shutil.which("scontrol") is None:
        return
    facts = dict(re.findall(r"(\w+)=(\S+)", _answer("scontrol", "show", "job", job_id)))
    preempted = facts.get("PreemptTime", "None") not in ("None", "N/A", "Unknown")
    if preempted and facts.get("Requeue") == "1" and facts.get("JobState") in ACTIVE_STATES:
        _answer("scontrol", "requeue", job_id)
        log.warning("SLURM preempts job %s: it is in the queue again, and will resume from its checkpoint", job_id)


def list_tasks() -> set[str] | None:
    """Return the ids of SLURM's jobs, such as `12`, or `12_3` for a task of an array; None if SLURM does not answer."""
    header, *ids = _answer("squeue", "--array", "--format=%i").split() or [""]
    return set(ids) if header else None


def list_queued(jobs: Sequence[str]) -> list[str]:
    """Return the ids of `jobs`, without array tasks, that SLURM runs or has in its queue."""
    listed = {line.partition("_")[0] for line in _answer("squeue", "--noheader", "--format=%i").split()}
    return [job_id for job_id in jobs if job_id in listed]


def cancel(jobs: Sequence[str], wait_s: float) -> list[str]:
    """End `jobs`, and return those that did not end within `wait_s` seconds and were killed.

    Jobs in the queue are removed first. SIGTERM is sent to the training processes of the others, but not to their batch
    script, because SLURM kills the processes of a batch script that ends.
    """
    _answer("scancel", "--state=PENDING", *jobs)
    _answer("scancel", "--state=RUNNING", "--signal=TERM", *jobs)
    if remaining := _wait_for(jobs, wait_s):
        _answer("scancel", *remaining)
        _wait_for(remaining, KILL_S)
    return remaining


def _wait_for(jobs: Sequence[str], seconds: float) -> list[str]:
    """Wait until SLURM has none of `jobs`, for at most `seconds`; return the jobs that it still has."""
    end = time.monotonic() + seconds
    while (remaining := list_queued(jobs)) and time.monotonic() < end:
        time.sleep(POLL_S)
    return remaining


def _answer(*command: str) -> str:
    """Return the output of a SLURM command; "" if it fails, as when the controller is unavailable."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
