"""A follower that is forked from the test's process, which has imported MLflow already: its import takes seconds."""

import os
import signal
import sys
import time
from contextlib import suppress

import pytest

from fedcohort.tracking import follow, tracker


class ForkedProcess:
    """Stands in for `subprocess.Popen` of a follower."""

    def __init__(self, *args: object, stdin: int, **kwargs: object) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(stdin, 0)
            sys._getframe(1).f_locals["self"].connection.close()  # the parent's end, which a started program lacks
            follow.log.handlers.clear()
            follow.main()
            os._exit(0)

    def wait(self) -> int | None:
        while self.returncode is None:
            pid_and_status = os.waitpid(self.pid, os.WNOHANG)
            if pid_and_status != (0, 0):
                self.returncode = os.waitstatus_to_exitcode(pid_and_status[1])
            time.sleep(0.01)
        return self.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Subprocess:
    """Stands in for the module `subprocess` in the tracker."""

    Popen, DEVNULL = ForkedProcess, -3


def fork_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have followers forked, and no earlier one used, until the test ends."""
    monkeypatch.setattr(tracker, "subprocess", Subprocess)
    monkeypatch.setattr(tracker.MlflowTracker, "_follower", None)
