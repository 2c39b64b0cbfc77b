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
ACTIVE_JOB_STATES = ("RUNNING", "SIGNALING")
JOB_QUERY_INTERVAL_S, KILL_TIMEOUT_S = 1.0, 60.0  # between two queries for jobs, and until killed jobs must have ended


def read_job_id() -> str | None:
    """Return the id of this job, such as `12`, or `12_3` for a task of an array; None outside of SLURM."""
    array_job_id, task_id = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array_job_id}_{task_id}" if array_job_id and task_id else os.environ.get("SLURM_JOB_ID") or None


def find_restarted_job() -> str | None:
    """Return the id of this job if SLURM has started it before, None at its first start."""
    restart_count = os.environ.get("SLURM_RESTART_COUNT", "")
    return read_job_id() if restart_count.isdecimal() and int(restart_count) > 0 else None


def requeue_if_preempted() -> None:
    """Requeue this job if SLURM preempts it with a grace period.

    SLURM only requeues jobs that it has to kill; a job that saves its state and ends within the grace period counts as
    completed. A cancelled job is not in a state of `ACTIVE_JOB_STATES`, and stays cancelled.
    """
    job_id, is_first_task = read_job_id(), os.environ.get("SLURM_PROCID", "0") == "0"  # which alone requeues the job
    if job_id is None or not is_first_task or shutil.which("scontrol") is None:
        return
    job_facts = dict(re.findall(r"(\w+)=(\S+)", _read_slurm_output("scontrol", "show", "job", job_id)))
    was_preempted = job_facts.get("PreemptTime", "None") not in ("None", "N/A", "Unknown")
    if was_preempted and job_facts.get("Requeue") == "1" and job_facts.get("JobState") in ACTIVE_JOB_STATES:
        _read_slurm_output("scontrol", "requeue", job_id)
        log.warning("SLURM preempts job %s: it is in the queue again, and will resume from its checkpoint", job_id)


def list_slurm_job_ids() -> set[str] | None:
    """Return the ids of SLURM's jobs, such as `12`, or `12_3` for a task of an array; None if SLURM can't be asked."""
    table_header, *task_ids = _read_slurm_output("squeue", "--array", "--format=%i").split() or [""]
    return set(task_ids) if table_header else None


def list_queued_job_ids(job_ids: Sequence[str]) -> list[str]:
    """Return those of `job_ids`, which are without array tasks, that SLURM runs or has in its queue."""
    queued_job_ids = {
        task_id.partition("_")[0] for task_id in _read_slurm_output("squeue", "--noheader", "--format=%i").split()
    }
    return [job_id for job_id in job_ids if job_id in queued_job_ids]


def cancel_jobs(job_ids: Sequence[str], wait_s: float) -> list[str]:
    """End the jobs `job_ids`, and return those that did not end within `wait_s` seconds and were killed.

    Jobs in the queue are removed first. SIGTERM is sent to the training processes of the others, but not to their batch
    script, because SLURM kills the processes of a batch script that ends.
    """
    _read_slurm_output("scancel", "--state=PENDING", *job_ids)
    _read_slurm_output("scancel", "--state=RUNNING", "--signal=TERM", *job_ids)
    if remaining_jobs := _wait_for_jobs(job_ids, wait_s):
        _read_slurm_output("scancel", *remaining_jobs)
        _wait_for_jobs(remaining_jobs, KILL_TIMEOUT_S)
    return remaining_jobs


def _wait_for_jobs(job_ids: Sequence[str], wait_s: float) -> list[str]:
    """Wait at most `wait_s` seconds until the jobs `job_ids` have left SLURM's queue; return those still in it."""
    deadline_s = time.monotonic() + wait_s
    while (remaining_jobs := list_queued_job_ids(job_ids)) and time.monotonic() < deadline_s:
        time.sleep(JOB_QUERY_INTERVAL_S)
    return remaining_jobs


def _read_slurm_output(*slurm_command: str) -> str:
    """Return the output of a SLURM command, given as words; "" if it fails, as without a controller."""
    try:
        return subprocess.run(slurm_command, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
