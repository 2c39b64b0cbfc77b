"""Run `python train.py` in a process that is forked from one that has already imported torch and Lightning.

Output, exit code and signals are those of the command. Only the imports, which take most of a small run's time, are
shared by all tests of a session. `tests/whole/test_kill.py` starts the real command.
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

import pytest

ROOT = Path(__file__).resolve().parents[1]
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["preloaded_libraries"])


@dataclass(frozen=True)
class FinishedCommand:
    returncode: int
    stdout: str
    stderr: str


class Command:
    """A running command, whose `stdout` and `stderr` can be read while it runs."""

    def __init__(self, *overrides: str, checkout: Path = ROOT) -> None:
        self._folder = tempfile.TemporaryDirectory()
        names = [os.path.join(self._folder.name, name) for name in ("stdout", "stderr")]
        for name in names:
            os.mkfifo(name)
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])  # for its children
        self._process = SERVER.Process(
            target=_command, args=(overrides, checkout, names, {**os.environ, "PYTHONPATH": path})
        )
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("PYTHONPATH", path)  # the fork server, which the first command starts, has no other path
            self._process.start()
        self.stdout, self.stderr = [Path(name).open() for name in names]  # noqa: SIM115  until `finish`

    def wait_for(self, text: str) -> None:
        """Read the output up to the line that contains `text`."""
        if not any(text in line for line in self.stdout):
            raise AssertionError(f"the command ended without printing {text!r}: {self.stderr.read()}")

    def send_signal(self, number: int) -> None:
        os.kill(self._process.pid or 0, number)

    def finish(self) -> FinishedCommand:
        """Wait for the command's end, and return its exit code and the output that has not been read."""
        stderr: list[str] = []
        reader = threading.Thread(target=lambda: stderr.append(self.stderr.read()))
        reader.start()
        stdout = "" if self.stdout.closed else self.stdout.read()
        reader.join()
        self._process.join()
        self.stdout.close()
        self.stderr.close()
        self._folder.cleanup()
        return FinishedCommand(self._process.exitcode or 0, stdout, stderr[0])


def run_command(*overrides: str, checkout: Path = ROOT) -> FinishedCommand:
    """Run `python train.py <overrides>` of the folder `checkout` to its end."""
    return Command(*overrides, checkout=checkout).finish()


def _command(overrides: tuple[str, ...], checkout: Path, names: list[str], environment: Mapping[str, str]) -> None:
    """Run the command in the child process and exit with its code."""
    assert "lightning.pytorch" in sys.modules, "the fork server could not import preloaded_libraries.py"
    for name, descriptor in zip(names, (1, 2), strict=True):
        os.dup2(os.open(name, os.O_WRONLY), descriptor)
    sys.stdout, sys.stderr = (_writer(descriptor) for descriptor in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(checkout)
    sys.path.insert(0, str(checkout / "src"))
    sys.argv = ["train.py", *overrides]
    code: object = 0
    try:
        runpy.run_path("train.py", run_name="__main__")
    except SystemExit as end:
        code = end.code
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # `multiprocessing` skips these at exit
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the reader may have closed the pipe
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _writer(descriptor: int) -> TextIO:
    return os.fdopen(descriptor, "w", buffering=1, closefd=False)
