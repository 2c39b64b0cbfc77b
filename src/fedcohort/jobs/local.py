"""Jobs on this machine: one after the other in this process, or in several worker processes with a log for each job.

A worker that dies fails only its own job, and the next job gets another worker. Workers are forked from a process that
has imported what every run needs: torch, Lightning and the tables' libraries take seconds, as long as a short run. This
fork server starts before the jobs are checked, and imports these packages meanwhile. Workers end with the process that
started them, however that ends.
"""

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fedcohort.host import messages
from fedcohort.host.orphan import end_when_parent_ends
from fedcohort.jobs.job import JobContext, handle_job_signals
from fedcohort.record import sweep_folder
from fedcohort.record.folder import describe_log
from fedcohort.record.sweep_folder import SweepJob

WORKER_DEATH_KIND = "WorkerDied"  # the kind of failure in the record of a job whose process died
# which limit threads
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# a sweep that a signal ends leaves semaphores, which that cleans up
SEMAPHORE_WARNING_FILTER = "ignore:resource_tracker:UserWarning"
PRELOADED_MODULES = (
    "fedcohort.jobs.fork_server",
    "fedcohort.jobs.job",
    "fedcohort.startup.fit",
    "pandas",
    "pyarrow.parquet",
)
HAS_FORK_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
WORKER_CONTEXT: Any = multiprocessing.get_context("forkserver" if HAS_FORK_SERVER else "spawn")


def run_local(
    context: JobContext, jobs: Mapping[int, Sequence[str]], n_jobs: int, n_threads: int = 1, *, in_process: bool = False
) -> Generator[int, None, None]:
    """Run `jobs`, at most `n_jobs` at a time, and yield the number of each as it ends.

    Args:
        context: folders, environment and options that the jobs share.
        jobs: overrides of each job, by number.
        n_jobs: largest number of jobs at the same time.
        n_threads: threads of a worker's libraries (`start_fork_server`).
        in_process: whether the jobs run in this process, which prints their messages, if `n_jobs` is 1.
    """
    if in_process and n_jobs == 1:
        for job_number, overrides in jobs.items():
            with suppress(Exception):  # the record has its error
                context.run(job_number, overrides)
            yield job_number
        return
    start_fork_server(n_threads)
    with closing(run_in_workers(context, jobs, min(n_jobs, len(jobs)))) as ended_jobs:
        for job_number, death_text in ended_jobs:
            job_record = sweep_folder.read_job_record(context.folder, job_number)
            if death_text and (job_record is None or job_record.how == "running"):
                folder, start_time = (job_record.folder, job_record.began) if job_record else (None, None)
                failed_job = SweepJob(context.folder, job_number, tuple(jobs[job_number]), folder, began=start_time)
                failed_job.write_record(
                    "failed", reason=f"{death_text}{describe_log(folder)}", error_name=WORKER_DEATH_KIND
                )
            yield job_number


def start_fork_server(n_threads: int) -> None:
    """Start the process from which workers are forked, where the platform can fork.

    Args:
        n_threads: number of threads of a job's libraries. The environment variables in THREAD_VARIABLES, which the
            libraries read at import, have precedence if they are set.
    """
    if not HAS_FORK_SERVER:
        return
    unset_variables = [thread_variable for thread_variable in THREAD_VARIABLES if not os.environ.get(thread_variable)]
    os.environ.update(dict.fromkeys(unset_variables, str(n_threads)))
    sys.warnoptions.append(SEMAPHORE_WARNING_FILTER)
    try:
        forkserver.set_forkserver_preload(list(PRELOADED_MODULES))
        forkserver.ensure_running()
    finally:
        sys.warnoptions.remove(SEMAPHORE_WARNING_FILTER)
        for thread_variable in unset_variables:
            os.environ.pop(thread_variable)


def run_in_workers(
    context: JobContext, jobs: Mapping[int, Sequence[str]], n_jobs: int
) -> Generator[tuple[int, str], None, None]:
    """Run jobs in worker processes. Yield each job's number when it ends, and the cause of death of its process.

    The cause is "" if the process is alive. When the generator is closed, or an error or a signal occurs, the workers
    finish their round, save and end.

    Args:
        context: folders, environment and options that the jobs share.
        jobs: overrides of each job, by number.
        n_jobs: largest number of jobs at the same time.
    """
    waiting_jobs, workers, job_by_worker = deque(jobs.items()), dict[Connection, BaseProcess](), dict[Connection, int]()
    try:
        while waiting_jobs or job_by_worker:
            while waiting_jobs and len(job_by_worker) < n_jobs:
                idle_connection = next((connection for connection in workers if connection not in job_by_worker), None)
                connection = _start_worker(context, workers) if idle_connection is None else idle_connection
                try:
                    connection.send(waiting_jobs[0])
                except ConnectionError:  # it died while it was idle
                    workers.pop(connection).join()
                else:
                    job_by_worker[connection] = waiting_jobs.popleft()[0]
            ready_connections = wait(list(job_by_worker))
            for connection, job_number in list(job_by_worker.items()):
                if connection in ready_connections:
                    del job_by_worker[connection]
                    try:
                        connection.recv()
                    except (EOFError, ConnectionError):
                        worker = workers.pop(connection)
                        worker.join()
                        yield job_number, describe_exit_code(worker.exitcode or 0)
                    else:
                        yield job_number, ""
    finally:
        for connection in job_by_worker:
            workers[connection].terminate()
        try:
            for connection, worker in workers.items():
                connection.close()
                worker.join()
        except KeyboardInterrupt:  # a second signal does not wait for the round
            for worker in workers.values():
                worker.kill()
            raise


def describe_exit_code(exit_code: int) -> str:
    """Return how a process ended, as text.

    Args:
        exit_code: exit code by `multiprocessing`; after a signal, minus its number, or 128 plus its number.
    """
    signal_number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        exit_cause = f"by {signal.Signals(signal_number).name}"
    except ValueError:
        exit_cause = f"with exit code {exit_code}"
    memory_hint = " (kill -9, or the kernel for lack of memory)" if signal_number == signal.SIGKILL else ""
    return f"its process was ended {exit_cause}{memory_hint}"


def find_worker_log_path(sweep: Path, job_number: int) -> Path:
    """Return the path of the output file of the job `job_number` in a worker; `sweep` is the sweep's folder."""
    return sweep / sweep_folder.JOB_RECORDS_FOLDER / f"{job_number}.log"


def _start_worker(context: JobContext, worker_by_connection: dict[Connection, BaseProcess]) -> Connection:
    """Start a worker process, add it to `worker_by_connection`, and return this process's end of the pipe to it.

    Args:
        context: folders, environment and options that the jobs share.
        worker_by_connection: the workers, by this process's ends of their pipes.
    """
    parent_connection, worker_connection = WORKER_CONTEXT.Pipe()
    worker = WORKER_CONTEXT.Process(target=_run_worker, args=(worker_connection, context))
    worker.start()
    worker_connection.close()
    worker_by_connection[parent_connection] = worker
    return parent_connection  # type: ignore[no-any-return]


def _run_worker(parent_connection: Connection, context: JobContext) -> None:
    """Run the jobs that arrive at `parent_connection`, which share `context`, until its other end is closed."""
    end_when_parent_ends()
    os.setpgrp()  # Ctrl-C in a terminal reaches the command, which sends one signal to each worker
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            job_number, overrides = parent_connection.recv()
            log_file = find_worker_log_path(context.folder, job_number)
            log_file.parent.mkdir(parents=True, exist_ok=True)
            with log_file.open("ab") as log_stream:
                for file_descriptor in (1, 2):
                    os.dup2(log_stream.fileno(), file_descriptor)
            messages.log_to_terminal()
            with handle_job_signals(), suppress(Exception):  # the record has its error
                context.run(job_number, overrides)
            sys.stdout.flush()
            parent_connection.send(job_number)
