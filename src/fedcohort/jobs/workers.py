"""Worker processes on this machine: each runs one job at a time, with one log file for each job.

A worker that dies fails only its own job, and the next job gets another worker. Workers are forked from a process that
has imported what runs need (`preload.py`), and end with the process that started them, however that ends.
"""

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fedcohort.host import messages
from fedcohort.host.orphan import end_when_parent_ends
from fedcohort.jobs.job import JobContext, own_process
from fedcohort.record import sweep_folder

HAS_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT: Any = multiprocessing.get_context("forkserver" if HAS_SERVER else "spawn")
Worker = tuple[Connection, BaseProcess]  # this process's end of the pipe to it


def run_in_workers(
    context: JobContext, jobs: Mapping[int, Sequence[str]], n_jobs: int
) -> Generator[tuple[int, str], None, None]:
    """Run `jobs`, and yield the number of each as it ends, with how its process died: "" if it did not.

    Closing the generator, an error or a signal ends the workers: they finish their round and save.
    """
    waiting, busy = deque(jobs.items()), dict[Connection, tuple[BaseProcess, int]]()
    idle, workers = list[Worker](), list[Worker]()
    try:
        while waiting or busy:
            while waiting and len(busy) < n_jobs:
                if not idle:
                    idle.append(_start(context))
                    workers.append(idle[-1])
                connection, process = idle.pop()
                with suppress(ConnectionError):  # it died while it was idle
                    connection.send(waiting[0])
                    busy[connection] = process, waiting.popleft()[0]
            finished = wait(list(busy))
            for ready in [connection for connection in busy if connection in finished]:
                process, number = busy.pop(ready)
                try:
                    ready.recv()
                except (EOFError, ConnectionError):
                    process.join()
                    yield number, describe_exit(process.exitcode or 0)
                else:
                    idle.append((ready, process))
                    yield number, ""
    finally:
        for process, _ in busy.values():
            process.terminate()
        try:
            for connection, process in workers:
                connection.close()
                process.join()
        except KeyboardInterrupt:  # a second signal does not wait for the round
            for _, process in workers:
                process.kill()
            raise


def describe_exit(exit_code: int) -> str:
    """Describe how a process ended. exit_code: as `multiprocessing` reports it, minus the number of a signal."""
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        how = f"by {signal.Signals(number).name}"
    except ValueError:
        how = f"with exit code {exit_code}"
    hint = " (kill -9, or the kernel for lack of memory)" if number == signal.SIGKILL else ""
    return f"its process was ended {how}{hint}"


def log_path(sweep: Path, number: int) -> Path:
    """Return the file with the output of a job that ran in a worker."""
    return sweep / sweep_folder.JOBS_FOLDER / f"{number}.log"


def _start(context: JobContext) -> Worker:
    parent_end, worker_end = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_serve, args=(worker_end, context))
    process.start()
    worker_end.close()
    return parent_end, process


def _serve(connection: Connection, context: JobContext) -> None:
    """Run jobs until the other end of `connection` is closed."""
    end_when_parent_ends()
    os.setpgrp()  # Ctrl-C in a terminal reaches the command, which sends one signal to each worker
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            number, words = connection.recv()
            path = log_path(context.folder, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as output:
                for descriptor in (1, 2):
                    os.dup2(output.fileno(), descriptor)
            messages.to_terminal()
            with own_process(), suppress(Exception):  # the record has its error
                context.run(number, words)
            sys.stdout.flush()
            connection.send(number)
