"""A command line in a child that is forked from this process, which has imported what commands need.

It costs a tenth of a process of its own, so that hundreds of bad command lines can be tried in minutes.
"""

import os
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from hostile.harness import Answer

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = (
    *("torch", "pandas", "matplotlib.figure", "lightning.pytorch", "hydra.main", "rich.table", "scipy.stats"),
    *("fedcohort.startup.start", "fedcohort.startup.fit", "fedcohort.startup.sweep", "fedcohort.startup.compose"),
    *("fedcohort.observe.progress", "fedcohort.observe.figures", "fedcohort.observe.summary", "fedcohort.round.parts"),
    *("fedcohort.command.study", "fedcohort.command.compare", "fedcohort.command.data", "fedcohort.command.replay"),
)


@cache
def warm_up() -> None:
    """Import once, in this process, what the children share."""
    for name in IMPORTED:
        import_module(name)
    import_module("torch").set_num_threads(1)


def lay_out(folder: Path) -> None:
    """Give `folder` what a checkout has: the configs and train.py, as links."""
    for name in ("configs", "train.py"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)


def train(folder: Path, words: Sequence[str], limit_s: float = 120) -> Answer:
    """Answer `python train.py <words>` in `folder`."""
    return _fork(
        folder, ["train.py", *words], partial(runpy.run_path, str(ROOT / "train.py"), None, "__main__"), limit_s
    )


def fedcohort(folder: Path, words: Sequence[str], limit_s: float = 120) -> Answer:
    """Answer `fedcohort <words>` in `folder`."""
    line = import_module("fedcohort.command.line")
    return _fork(folder, ["fedcohort", *words], line.console, limit_s)


def _fork(folder: Path, argv: list[str], run: Callable[[], object], limit_s: float) -> Answer:
    warm_up()
    lay_out(folder)
    said = folder / ".said"
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.setsid()
        _run_and_exit(folder, said, argv, run)
    end = time.monotonic() + limit_s
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.01)
    if not ended[0]:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    text = said.read_text(errors="replace")
    said.unlink()
    return Answer(os.waitstatus_to_exitcode(ended[1]) if ended[0] else None, text)


def _run_and_exit(folder: Path, said: Path, argv: list[str], run: Callable[[], object]) -> None:
    """Be the command: its output goes to the file `said`, and the process ends with its exit code."""
    code: object = 0
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
        for descriptor, mode in ((0, "r"), (1, "w"), (2, "w")):
            os.dup2(os.open(os.devnull, os.O_RDONLY) if mode == "r" else output, descriptor)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(descriptor, mode, buffering=1, closefd=False)
            for descriptor, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = argv
        run()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
        if isinstance(code, str):
            os.write(2, f"{code}\n".encode())
        os._exit(code if isinstance(code, int) else int(code is not None))
