"""Calls of the program in a forked child: the imports are done, and a crash or a hang costs the other cases nothing."""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

from hostile.harness import Answer


def fork(work: Callable[[], int], limit_s: float = 120) -> Answer:
    """Return what `work` wrote and its exit code as a command's; code None after `limit_s` seconds."""
    with tempfile.TemporaryFile() as out:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            _end(work)
        end, status = time.monotonic() + limit_s, None
        while status is None and time.monotonic() < end:
            done, code = os.waitpid(pid, os.WNOHANG)
            status = code if done else None
            time.sleep(0 if done else 0.01)
        if status is None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        out.seek(0)
        text = out.read().decode(errors="replace")
    return Answer(None if status is None else os.waitstatus_to_exitcode(status), text)


def _end(work: Callable[[], int]) -> None:
    """Do `work` in the child, and leave with its code."""
    code = 70
    try:
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
