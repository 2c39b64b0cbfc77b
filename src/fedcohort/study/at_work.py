"""The processes of a study: one command at a time, its worker processes, and the warnings that they print."""

import fcntl
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fedcohort.errors import CheckpointError
from fedcohort.host import messages
from fedcohort.host.orphan import end_with_parent

P = ParamSpec("P")
T = TypeVar("T")
Worker = tuple[Connection, BaseProcess]  # this process's end of the pipe to it
CONTEXT = get_context("spawn")


@contextmanager
def alone(logs: Path) -> Iterator[None]:
    """Hold the study: two processes would write over each other's results. Raises `CheckpointError`."""
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / "study.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CheckpointError(
                f"{logs.name}: another process is at work on this study; n_jobs=2 has two in one"
            ) from error
        yield


class WorkerDied(Exception):
    """A worker process ended during a call. exit_code: as `multiprocessing` reports it, minus the signal's number."""

    def __init__(self, exit_code: int) -> None:
        number = -exit_code if exit_code < 0 else exit_code - 128
        try:
            how = f"by {signal.Signals(number).name}"
        except ValueError:
            how = f"with exit code {exit_code}"
        hint = " (kill -9, or the kernel for lack of memory)" if number == signal.SIGKILL else ""
        super().__init__(f"its process was ended {how}{hint}")


class Workers(ThreadPoolExecutor):
    """Worker processes, one for each thread: a process that dies costs its own call alone, which raises `WorkerDied`.

    The next call of that thread starts another process. The processes end with this one, however it ends.
    """

    def __init__(self, n_jobs: int) -> None:
        super().__init__(n_jobs)
        self._local = threading.local()
        self._started: list[Worker] = []

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `function` in a worker process."""
        return super().submit(self._call, function, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the calls under way, then end the processes."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for connection, process in self._started:
            connection.close()
            process.join()

    def _call(self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        worker: Worker | None = getattr(self._local, "worker", None)
        connection, process = worker if worker is not None and worker[1].is_alive() else self._start()
        try:
            connection.send((function, args, kwargs))
            result: T = connection.recv()
        except (EOFError, ConnectionError):
            process.join()
            raise WorkerDied(process.exitcode or 0) from None
        return result

    def _start(self) -> Worker:
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=_serve, args=(theirs,))
        process.start()
        theirs.close()
        self._local.worker = worker = (ours, process)
        self._started.append(worker)
        return worker


def _serve(connection: Connection) -> None:
    """Answer calls until the other end of `connection` is closed."""
    end_with_parent()
    messages.to_terminal()
    for handler in messages.log.handlers:
        handler.addFilter(Once())
    with suppress(EOFError, KeyboardInterrupt, ConnectionError):
        while True:
            function, args, kwargs = connection.recv()
            connection.send(function(*args, **kwargs))


class Once(logging.Filter):
    """Lets each warning pass once: hundreds of runs have the same remarks, and their progress is said elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        fresh = record.levelno >= logging.WARNING and text not in self.seen
        self.seen.add(text)
        return fresh


@contextmanager
def quietly() -> Iterator[None]:
    """Say on the terminal what is to be noticed, once."""
    messages.to_terminal()
    once = Once()
    handlers = [each for each in messages.log.handlers if isinstance(each, logging.StreamHandler)]
    for handler in handlers:
        handler.addFilter(once)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(once)
