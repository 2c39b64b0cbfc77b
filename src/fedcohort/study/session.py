"""One command at a time on a study, and each of its warnings once on the terminal."""

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedcohort.errors import CheckpointError
from fedcohort.host import messages

LOCK = "study.lock"  # in the folder of the study's logs, held by the command at work


@contextmanager
def alone(logs: Path) -> Iterator[None]:
    """Hold the study: two processes would write over each other's results. Raises `CheckpointError`."""
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CheckpointError(
                f"{logs.name}: another process is at work on this study; n_jobs=2 has two in one"
            ) from error
        yield


class Once(logging.Filter):
    """Lets each warning pass once: hundreds of runs have the same warnings."""

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
    """Print each warning once, and no other message."""
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
