"""Jobs on a SLURM cluster, submitted as an array by submitit. Their records are in the sweep's folder.

A task is lost if SLURM's queue no longer contains it, but its record does not say how it ended.
"""

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort.host import messages, slurm
from fedcohort.jobs.job import JobContext, handle_job_signals
from fedcohort.record import sweep_folder

SLURM_LOG_FOLDER = ".submitit"  # in the sweep's: scripts and logs
POLL_INTERVAL_S, QUEUE_INTERVAL_S = 1.0, 10.0  # seconds between two looks at the records, and at SLURM's queue
SUBMITIT_OPTIONS = ("timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes", "name")
MAX_ARRAY_TASKS = 1000  # tasks of an array; SLURM's MaxArraySize is 1001 unless its administrator changed it
LOST_JOB_MESSAGE = "SLURM no longer has the job, and its record does not say how it ended"


@dataclass(frozen=True)
class ArrayTask:
    """A function that submitit calls in each task of a SLURM array to run one job.

    Attributes:
        context: folders, environment and options that all jobs of the sweep share.
    """

    context: JobContext

    def __call__(self, job_number: int, overrides: Sequence[str]) -> None:
        messages.log_to_terminal()
        with handle_job_signals():
            self.context.run(job_number, overrides)

    def checkpoint(self, job_number: int, overrides: Sequence[str]) -> Any:  # noqa: ANN401 - submitit has no types
        """Return the task that SLURM restarts after a preemption or at the job's time limit.

        Args:
            job_number: number of the job in the sweep, from 0.
            overrides: the job's overrides.
        """
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, job_number, overrides)


def submit_jobs(context: JobContext, jobs: Mapping[int, Sequence[str]], options: Mapping[str, Any]) -> dict[int, str]:
    """Submit jobs to SLURM as arrays, and return SLURM's id of each job's task, by job number.

    Args:
        context: folders, environment and options that all jobs of the sweep share.
        jobs: overrides of each job, by number.
        options: options of `hydra.launcher`.
    """
    import submitit

    options = {k: v for k, v in options.items() if not k.startswith("_") and v is not None}
    merges_stderr, max_retries = options.pop("stderr_to_stdout", False), options.pop("max_num_timeout", 0)
    options.pop("submitit_folder", None)
    log_folder = context.folder / SLURM_LOG_FOLDER / "%j"
    slurm_executor = submitit.AutoExecutor(log_folder, cluster="slurm", slurm_max_num_timeout=max_retries)
    submitit_options: dict[str, Any] = {k if k in SUBMITIT_OPTIONS else f"slurm_{k}": v for k, v in options.items()}
    slurm_executor.update_parameters(stderr_to_stdout=merges_stderr, **submitit_options)
    job_numbers, array_tasks = list(jobs), list[Any]()
    job_arrays = [job_numbers[i : i + MAX_ARRAY_TASKS] for i in range(0, len(job_numbers), MAX_ARRAY_TASKS)]
    if max_parallel_jobs := submitit_options.get("slurm_array_parallelism"):  # of all arrays together
        slurm_executor.update_parameters(slurm_array_parallelism=max(1, max_parallel_jobs // len(job_arrays)))
    for array_jobs in job_arrays:
        array_tasks += slurm_executor.map_array(ArrayTask(context), array_jobs, [tuple(jobs[n]) for n in array_jobs])
    return {job_number: str(task.job_id) for job_number, task in zip(job_numbers, array_tasks, strict=True)}


def run_jobs(
    context: JobContext, jobs: Mapping[int, Sequence[str]], launcher_options: Mapping[str, Any], *, waits_for_jobs: bool
) -> Generator[int, None, None]:
    """Submit jobs to SLURM, and yield the number of each job when it ends.

    Args:
        context: folders, environment and options that all jobs of the sweep share.
        jobs: overrides of each job, by number.
        launcher_options: options of `hydra.launcher`.
        waits_for_jobs: whether to wait for the jobs; otherwise nothing is yielded.
    """
    task_ids = submit_jobs(context, jobs, launcher_options)
    if waits_for_jobs:
        yield from yield_ended_jobs(context.folder, task_ids)


def yield_ended_jobs(sweep: Path, task_ids: Mapping[int, str]) -> Generator[int, None, None]:
    """Yield the number of each SLURM job when it ends; a job that SLURM has lost counts as ended.

    Args:
        sweep: folder of the sweep.
        task_ids: SLURM's id of each job's task, by job number.
    """
    unfinished_tasks, last_query_s = dict(task_ids), 0.0
    while unfinished_tasks:
        queued_tasks = None
        if time.monotonic() - last_query_s > QUEUE_INTERVAL_S:
            queued_tasks, last_query_s = slurm.list_slurm_job_ids(), time.monotonic()
        job_records = sweep_folder.read_job_records(sweep)  # after the queue: a job that has just ended is not lost
        for job_number, task_id in list(unfinished_tasks.items()):
            job_record = job_records.get(job_number)
            has_job_ended = job_record is not None and job_record.how != "running"
            if not has_job_ended and queued_tasks is not None and task_id not in queued_tasks:
                overrides, run_folder = (job_record.words, job_record.folder) if job_record else ((), None)
                lost_job = sweep_folder.SweepJob(sweep, job_number, overrides, run_folder)
                lost_job.write_record("failed", reason=LOST_JOB_MESSAGE)
                has_job_ended = True
            if has_job_ended:
                del unfinished_tasks[job_number]
                yield job_number
        time.sleep(POLL_INTERVAL_S if unfinished_tasks else 0)


def list_array_ids(sweep: Path) -> list[str]:
    """Return SLURM's ids of the arrays of the sweep in the folder `sweep`."""
    return sorted({log_path.name.partition("_")[0] for log_path in sweep.glob(f"{SLURM_LOG_FOLDER}/[0-9]*")})


def list_queued_array_ids(sweep: Path) -> list[str]:
    """Return SLURM's ids of the arrays of the sweep in the folder `sweep` that run or wait in the queue."""
    array_ids = list_array_ids(sweep)
    return slurm.list_queued_job_ids(array_ids) if array_ids else []
