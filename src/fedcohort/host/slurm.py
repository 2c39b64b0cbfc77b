"""What SLURM says of the job that this process is: its id, whether it was started before, whether it must make room.

A job is put back into the queue (requeued) where its node died, where an administrator asks for it, or where another
job needs its place. It starts again with the same command, in the same environment but for `SLURM_RESTART_COUNT`.
"""

import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence

log = logging.getLogger("fedcohort")
AT_WORK = ("RUNNING", "SIGNALING")
POLL_S, KILL_S = 1.0, 60.0  # seconds between two looks for jobs that end, and until killed ones have ended


def job() -> str | None:
    """The id of this job, `12_3` for one of an array; None outside of SLURM."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID") or None


def find_restarted_job() -> str | None:
    """Return the id of this job where SLURM has started it before, None where this is its first start."""
    restarts = os.environ.get("SLURM_RESTART_COUNT", "")
    return job() if restarts.isdecimal() and int(restarts) > 0 else None


def requeue_if_preempted() -> None:
    """Put this job back into the queue where SLURM has asked it to make room within a time of grace.

    One that saves and ends within that time counts as completed: SLURM requeues only those that it has to kill. A job
    that somebody cancels is at work no more, and stays cancelled.
    """
    own = job()
    if os.environ.get("SLURM_PROCID", "0") != "0":  # the job's first task does
        return
    if own is None or shutil.which("scontrol") is None:
        return
    facts = dict(re.findall(r"(\w+)=(\S+)", _answer("scontrol", "show", "job", own)))
    preempted = facts.get("PreemptTime", "None") not in ("None", "N/A", "Unknown")
    if preempted and facts.get("Requeue") == "1" and facts.get("JobState") in AT_WORK:
        _answer("scontrol", "requeue", own)
        log.warning("SLURM needs the place of job %s: it is back in the queue, and goes on where it was", own)


def list_tasks() -> set[str] | None:
    """Return the ids of SLURM's jobs, such as `12`, or `12_3` for a task of an array; None where it does not answer."""
    head, *ids = _answer("squeue", "--array", "--format=%i").split() or [""]
    return set(ids) if head else None


def list_queued(jobs: Sequence[str]) -> list[str]:
    """Return those of `jobs`, ids without their array's tasks, that SLURM still runs or has in its queue."""
    listed = {line.partition("_")[0] for line in _answer("squeue", "--noheader", "--format=%i").split()}
    return [each for each in jobs if each in listed]


def cancel(jobs: Sequence[str], wait_s: float) -> list[str]:
    """End `jobs`, and return those that did not end by themselves within `wait_s` seconds and were killed.

    Jobs in the queue are removed first. SIGTERM goes to the training processes of the others, not to their batch
    script: when that ends, SLURM kills what it has started.
    """
    _answer("scancel", "--state=PENDING", *jobs)
    _answer("scancel", "--state=RUNNING", "--signal=TERM", *jobs)
    if left := _wait_for(jobs, wait_s):
        _answer("scancel", *left)
        _wait_for(left, KILL_S)
    return left


def _wait_for(jobs: Sequence[str], seconds: float) -> list[str]:
    """Wait until SLURM has none of `jobs` any more, at most so many seconds; return those that it has."""
    end = time.monotonic() + seconds
    while (left := list_queued(jobs)) and time.monotonic() < end:
        time.sleep(POLL_S)
    return left


def _answer(*command: str) -> str:
    """What a command of SLURM's says, nothing where it fails: the controller may be away."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
