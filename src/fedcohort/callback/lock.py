"""Locks between processes, freed by the kernel when their holder dies, however it dies."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY = (errno.EACCES, errno.EAGAIN)


class Held:
    """A lock on `path` for as long as this object is open. A forked child does not inherit it."""

    def __init__(self, path: Path, *, wait: bool) -> None:
        """Raises `BlockingIOError` where another process holds it and `wait` is false."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno in BUSY:
                os.close(self._descriptor)
                raise BlockingIOError(error.errno, "locked by another process", str(path)) from error
            # A file system without locks (some cluster mounts): the run goes on without them.

    def close(self) -> None:
        """Free the lock; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process is inside."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = Held(path, wait=True)
    try:
        yield
    finally:
        held.close()


def is_held(path: Path) -> bool:
    """Whether another process holds the lock now."""
    if not path.exists():
        return False
    try:
        Held(path, wait=False).close()
    except BlockingIOError:
        return True
    return False
