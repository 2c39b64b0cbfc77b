"""Locks between processes, which the kernel releases when their holder ends for any reason."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def exclusive_lock(lock_path: Path) -> Iterator[None]:
    """Allow one process at a time in the `with` block by a lock on the file `lock_path`.

    A file system without locks lets all processes in.
    """
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("a") as lock_file:
        with suppress(OSError):  # ENOLCK or ENOSYS on file systems of some clusters
            fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def try_to_lock(lock_path: Path) -> IO[str] | None:
    """Return a lock on the file `lock_path`, held until it is closed or the process ends; None if it can't be had."""
    lock_file = lock_path.open("a")  # an existing file keeps its content
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock_file.close()
        return None
    return lock_file


def is_locked(lock_path: Path) -> bool:
    """Return whether a process holds the lock on the file `lock_path` now."""
    mode = "rb+" if os.access(lock_path, os.W_OK) else "rb"  # network file systems lock files for writing only
    with suppress(FileNotFoundError, NotADirectoryError), lock_path.open(mode, buffering=0) as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
    return False
