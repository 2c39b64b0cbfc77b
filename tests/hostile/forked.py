"""Calls in a forked child: the imports are done already, and a crash or a hang costs the other cases nothing."""

import os
import resource
import runpy
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

from fedcohort.errors import FedcohortError
from hostile.harness import ROOT, Answer

IMPORTED = (
    *("torch", "pandas", "matplotlib.figure", "lightning.pytorch", "hydra.main", "rich.table", "scipy.stats"),
    *("fedcohort.jobs.start", "fedcohort.startup.fit", "fedcohort.jobs.sweep", "fedcohort.startup.compose"),
    *(
        "fedcohort.console.progress",
        "fedcohort.report.run_figures",
        "fedcohort.console.summary",
        "fedcohort.round.components",
    ),
    *("fedcohort.command.study", "fedcohort.command.compare", "fedcohort.command.data", "fedcohort.command.replay"),
)


@cache
def warm_up() -> None:
    """Import once, in this process, what the children share."""
    for name in IMPORTED:
        import_module(name)
    import_module("torch").set_num_threads(1)


def fork(action: Callable[[], object], limit_s: float = 120, memory_bytes: int | None = None) -> Answer:
    """Run `action` in a forked child with a new process group.

    Args:
        action: returns the exit status, None for 0. A `FedcohortError` ends the child as it ends a command.
        limit_s: seconds until the child and its children are killed.
        memory_bytes: limit of the child's address space beyond the parent's, None for no limit.

    Returns:
        The exit status and both streams; the status is None where the child was killed for its time.
    """
    with tempfile.TemporaryFile() as stream:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            os.setsid()
            _run_and_exit(action, stream, memory_bytes)
        code = _wait(child, limit_s)
        stream.seek(0)
        return Answer(code, stream.read().decode(errors="replace"))


def _run_and_exit(action: Callable[[], object], stream: IO[bytes], memory_bytes: int | None) -> None:
    """Do `action` with its output in `stream`, and end the process with its exit status."""
    code: object = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        if memory_bytes is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        code = action()
    except SystemExit as end:
        code = end.code
    except FedcohortError as error:
        print(error, file=sys.stderr)
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        if isinstance(code, str):
            print(code, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _wait(child: int, limit_s: float) -> int | None:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def train(folder: Path, overrides: Sequence[str], limit_s: float = 120) -> Answer:
    """Answer `python train.py <overrides>` in `folder`."""
    return _command(folder, ["train.py", *overrides], lambda: _run_script(ROOT / "train.py"), limit_s)


def fedcohort(folder: Path, arguments: Sequence[str], limit_s: float = 120) -> Answer:
    """Answer `fedcohort <arguments>` in `folder`."""
    return _command(folder, ["fedcohort", *arguments], import_module("fedcohort.command.line").console, limit_s)


def _run_script(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


def _command(folder: Path, argv: list[str], run: Callable[[], object], limit_s: float) -> Answer:
    """Run a command in `folder`, which gets the configs and train.py of a checkout as links."""
    warm_up()
    for name in ("configs", "train.py"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)

    def action() -> object:
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = argv
        return run()

    return fork(action, limit_s)
