"""The processes at work on a study: one command at a time, and those that it starts; they say what is to be noticed."""

import fcntl
import logging
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from fedcohort.errors import CheckpointError
from fedcohort.host import messages
from fedcohort.host.orphan import die_with


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


def processes(n_jobs: int) -> ProcessPoolExecutor:
    """Return `n_jobs` processes that wait for work. They end with this one, however it ends."""
    return ProcessPoolExecutor(n_jobs, get_context("spawn"), _begin, (os.getpid(),))


def _begin(parent: int) -> None:
    die_with(parent)
    messages.to_terminal()
    for handler in messages.log.handlers:
        handler.addFilter(Once())


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
