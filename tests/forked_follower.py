"""A follower that is forked from the test's process, which has imported MLflow already: its import takes seconds."""

import os
import signal
import time
from contextlib import suppress

import pytest

from fedcohort.tracking import follow, tracker


class ForkedProcess:
    """Stands in for `subprocess.Popen` of a follower."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        (read, to), (source, write) = os.pipe(), os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.dup2(read, 0)
            os.dup2(write, 1)
            for descriptor in (read, write, to, source):
                os.close(descriptor)
            follow.log.handlers.clear()
            follow.main()
            os._exit(0)
        os.close(read)
        os.close(write)
        self.stdin, self.stdout = os.fdopen(to, "wb", 0), os.fdopen(source, "rb", 0)

    def wait(self) -> int | None:
        while self.returncode is None:
            ended = os.waitpid(self.pid, os.WNOHANG)
            if ended != (0, 0):
                self.returncode = os.waitstatus_to_exitcode(ended[1])
            time.sleep(0.01)
        return self.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Subprocess:
    """Stands in for the module `subprocess` in the tracker."""

    Popen, PIPE, DEVNULL = ForkedProcess, -1, -3


def fork_followers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have followers forked, and no earlier one used, until the test ends."""
    monkeypatch.setattr(tracker, "subprocess", Subprocess)
    monkeypatch.setattr(tracker.MlflowTracker, "_follower", None)
