"""Jobs on this machine: one after the other in this process, or in several worker processes."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing

from fedcohort.jobs import preload
from fedcohort.jobs.job import JobContext
from fedcohort.jobs.workers import run_in_workers
from fedcohort.record import sweep_folder
from fedcohort.record.folder import describe_log
from fedcohort.record.sweep_folder import SweepJob

DIED = "WorkerDied"  # the kind of failure in the record of a job whose process died


def run_local(
    context: JobContext, jobs: Mapping[int, Sequence[str]], n_jobs: int, threads: int = 1, *, in_process: bool = False
) -> Generator[int, None, None]:
    """Run `jobs`, at most `n_jobs` at a time, and yield the number of each as it ends.

    Args:
        context: what the jobs share.
        jobs: the overrides of each, by number.
        n_jobs: jobs at the same time.
        threads: threads of a worker's libraries.
        in_process: whether a single job at a time runs in this process, whose terminal then has its messages.
    """
    if in_process and n_jobs == 1:
        for number, words in jobs.items():
            context.run(number, words)
            yield number
        return
    preload.start_fork_server(threads)
    with closing(run_in_workers(context, jobs, min(n_jobs, len(jobs)))) as ended:
        for number, death in ended:
            record = sweep_folder.read_record(context.folder, number)
            if death and (record is None or record.how == "running"):
                folder, began = (record.folder, record.began) if record else (None, None)
                job = SweepJob(context.folder, number, tuple(jobs[number]), folder, began=began)
                job.note("failed", reason=f"{death}{describe_log(folder)}", kind=DIED)
            yield number
