"""The end of a process of `multiprocessing` as soon as its parent has ended for any reason."""

import ctypes
import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import wait

PR_SET_PDEATHSIG = 1  # prctl.h
_WATCHING_PIDS: list[int] = []  # id of the process that watches its parent; its forks have to start watching themselves


def end_when_parent_ends() -> None:
    """End this process when its parent ends.

    A thread waits for the end of a pipe whose other end only the parent holds. This works on all platforms, and for
    workers of a fork server. Linux also kills a direct child, even if it holds the interpreter's lock.
    """
    parent_process = multiprocessing.parent_process()
    # None: joblib ends its own workers
    if parent_process is None or parent_process.sentinel is None or [os.getpid()] == _WATCHING_PIDS:
        return
    _WATCHING_PIDS[:] = [os.getpid()]
    if os.getppid() == parent_process.pid:
        end_when_forking_thread_ends()
    if wait([parent_process.sentinel], timeout=0):  # the parent has ended already
        _end_process()
    parent_sentinels = (parent_process.sentinel,)
    threading.Thread(target=_end_with_parent, args=parent_sentinels, name="end with parent", daemon=True).start()


def end_when_forking_thread_ends() -> None:
    """Let Linux kill this process when the thread that forked it ends; without effect on other platforms."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_parent(parent_sentinel: int) -> None:
    wait([parent_sentinel])
    _end_process()


def _end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
