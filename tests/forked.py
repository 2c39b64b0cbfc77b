"""A call in a forked child: what it prints, how it ends, and a limit for a call that hangs or takes all memory."""

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from hostile.harness import Answer


def forked(action: Callable[[], int | None], limit_s: float = 60, memory_bytes: int | None = None) -> Answer:
    """Run `action` in a forked child.

    Args:
        action: returns the exit status, None for 0.
        limit_s: seconds until the child is killed.
        memory_bytes: limit of the child's address space beyond the parent's, None for no limit.

    Returns:
        The status and both streams; the status is None where the child was killed for its time.
    """
    with tempfile.TemporaryFile() as stream:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _run(action, stream.fileno(), memory_bytes)
        code = _wait(child, limit_s)
        stream.seek(0)
        return Answer(code, stream.read().decode(errors="replace"))


def _run(action: Callable[[], int | None], descriptor: int, memory_bytes: int | None) -> None:
    """What the child does."""
    for number in (1, 2):
        os.dup2(descriptor, number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    code = 1
    try:
        if memory_bytes is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        code = action() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _wait(child: int, limit_s: float) -> int | None:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
