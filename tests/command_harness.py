"""`python train.py <words>` in a process of its own, forked from one that has imported torch and Lightning.

What it says, writes and returns is the command's, and signals reach it as they would; only the imports, most of a small
run's seconds, are shared by all tests of a session. `tests/whole/test_kill.py` starts the command itself.
"""

import atexit
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = ["hydra", "lightning.pytorch", "matplotlib.figure", "pandas", "torch"]  # nothing of ours
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(IMPORTED)


@dataclass(frozen=True)
class FinishedCommand:
    returncode: int
    stdout: str
    stderr: str


class Command:
    """A started command; `stdout` and `stderr` are what it writes, as it writes it."""

    def __init__(self, *words: str, home: Path = ROOT) -> None:
        self._folder = tempfile.TemporaryDirectory()
        names = [os.path.join(self._folder.name, name) for name in ("stdout", "stderr")]
        for name in names:
            os.mkfifo(name)
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])  # for what it starts itself
        self._process = SERVER.Process(target=_command, args=(words, home, names, {**os.environ, "PYTHONPATH": path}))
        self._process.start()
        self.stdout, self.stderr = [Path(name).open() for name in names]  # noqa: SIM115  until `finish`

    def wait_for(self, text: str) -> None:
        """Read what it writes as far as the line that holds `text`."""
        if not any(text in line for line in self.stdout):
            raise AssertionError(f"it ended without saying {text!r}: {self.stderr.read()}")

    def send_signal(self, number: int) -> None:
        os.kill(self._process.pid or 0, number)

    def finish(self) -> FinishedCommand:
        """Wait for its end; what hadn't been read of it, and the exit code as a shell has it."""
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.append(self.stderr.read()))
        reader.start()
        out = "" if self.stdout.closed else self.stdout.read()
        reader.join()
        self._process.join()
        self.stdout.close()
        self.stderr.close()
        self._folder.cleanup()
        return FinishedCommand(self._process.exitcode or 0, out, said[0])


def run_command(*words: str, home: Path = ROOT) -> FinishedCommand:
    """`python train.py <words>` of the checkout in `home`, from its start to its end."""
    return Command(*words, home=home).finish()


def _command(words: tuple[str, ...], home: Path, names: list[str], environment: Mapping[str, str]) -> None:
    """What the child does."""
    for name, descriptor in zip(names, (1, 2), strict=True):
        os.dup2(os.open(name, os.O_WRONLY), descriptor)
    sys.stdout, sys.stderr = (_writer(descriptor) for descriptor in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(home)
    sys.path.insert(0, str(home / "src"))
    sys.argv = ["train.py", *words]
    code: object = 0
    try:
        runpy.run_path("train.py", run_name="__main__")
    except SystemExit as end:
        code = end.code
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # a process of `multiprocessing` would leave these out
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody may read it any more
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _writer(descriptor: int) -> TextIO:
    return os.fdopen(descriptor, "w", buffering=1, closefd=False)
