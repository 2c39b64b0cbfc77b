"""End a process that `multiprocessing` started as soon as the process that started it is gone, however it ended."""

import ctypes
import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import wait

PR_SET_PDEATHSIG = 1  # prctl.h
_WATCHING: list[int] = []  # the process that watches its parent; a process that is forked from it does not yet


def end_with_parent() -> None:
    """End this process with its parent.

    A thread waits for the end of a pipe whose other end only the parent holds, on any platform and also for a worker
    of a fork server. Linux kills a direct child by itself, even one that holds the interpreter's lock.
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent.sentinel is None or [os.getpid()] == _WATCHING:  # None: joblib ends its own workers
        return
    _WATCHING[:] = [os.getpid()]
    if os.getppid() == parent.pid:
        end_with_process()
    if wait([parent.sentinel], timeout=0):  # the parent was gone before
        _end()
    threading.Thread(target=_end_after, args=(parent.sentinel,), name="end with parent", daemon=True).start()


def end_with_process() -> None:
    """Have Linux kill this process when the thread that forked it ends. Other platforms have no such call."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
