"""The courier in a process of its own, so that a run doesn't wait for MLflow.

Importing MLflow takes seconds, a slow server minutes. One worker serves all runs of a process, one after the other.

The run writes lines: JSON where it starts or ends, an empty one where the journal has gained a round. The worker
answers with JSON: what is to be said, and when it is done. It ends when the run's process has ended; what a killed run
has committed is sent before that, for at most LAST_S seconds.
"""

import json
import logging
import os
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError
from fedcohort.host.commands import fedcohort
from fedcohort.record import card
from fedcohort.tracking.courier import Courier
from fedcohort.tracking.server import Place, preload

Message = Mapping[str, Any]
BYTES = 65_536
NICE = 5  # training comes first
LAST_S = 20.0  # seconds


class Worker:
    """The run's end of it. Forked processes may use it in their parent's stead."""

    def __init__(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the run, which then ends the worker
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the worker has no pipes")
        self._process = process
        self._to, self._from = process.stdin.fileno(), process.stdout.fileno()
        self._lines = _Lines()

    def tell(self, message: Message, until: float) -> bool:
        """Write a message; False if the worker has ended, or has not read earlier ones by `until`."""
        data = json.dumps(message).encode() + b"\n"
        with suppress(BlockingIOError):
            return self._write(data)
        with suppress(BlockingIOError):
            return bool(select.select([], [self._to], [], _remaining(until))[1]) and self._write(data)
        return False

    def poke(self) -> bool:
        """The journal has a new line. A pipe that is full says so already. False if the worker has ended."""
        try:
            return self._write(b"\n")
        except BlockingIOError:
            return True

    def hear(self, until: float) -> Iterator[Message]:
        """Yield what the worker says until it ends, at most until the time `until`, of `time.monotonic`."""
        while select.select([self._from], [], [], _remaining(until))[0]:
            if not (data := os.read(self._from, BYTES)):
                return
            yield from (json.loads(line) for line in self._lines.whole(data))

    def lives(self) -> bool:
        """Return whether the worker has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the worker, which may wait for a server that does not answer."""
        self._process.kill()
        self._process.wait()

    def _write(self, data: bytes) -> bool:
        os.set_blocking(self._to, False)
        try:
            return os.write(self._to, data) == len(data)
        except BrokenPipeError:
            return False


def _remaining(until: float) -> float:
    return min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)


class _Lines:
    """Whole lines out of pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def whole(self, data: bytes) -> list[bytes]:
        *found, self._rest = (self._rest + data).split(b"\n")
        return found


def start_message(run: str, folder: Path, place: Place, every_s: float, wait_s: float) -> Message:
    """Make the message that tells the worker to track the run in `folder`.

    run: a name for it, which comes back with every answer.
    """
    return {"run": run, "folder": str(folder), "place": asdict(place), "every_s": every_s, "wait_s": wait_s}


def finish_message(run: str, status: str, *, past: bool = False) -> Message:
    """Make the message that tells the worker that the run has ended; past: with its last round, not now."""
    return {"run": run, "status": status, "past": past}


class Desk:
    """The worker's end of it."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._run = self._folder = ""
        self._courier: Courier | None = None
        self._pending = False

    def say(self, **message: object) -> None:
        with suppress(BrokenPipeError):  # nobody listens any more
            os.write(self._output, json.dumps({"run": self._run, **message}).encode() + b"\n")

    def timeout(self) -> float | None:
        """Seconds until something is due; None where nothing is."""
        return max(0.0, self._courier.due - time.monotonic()) if self._courier and self._pending else None

    def take(self, line: bytes) -> None:
        """Take one line of the run's."""
        if not line:
            self._pending = True
            return
        message = json.loads(line)
        if "status" not in message:
            self._safely(lambda: self._start(message))
        elif message["run"] == self._run:
            self._safely(lambda: self._finish(message["status"], past=message["past"]))
            self.say(done=True)

    def work(self) -> None:
        """What is due by now."""
        if self.timeout() == 0.0:
            self._pending = False
            self._safely(self._observe)

    def leave(self) -> None:
        """Send what the run has committed, now that it is gone."""
        if self._courier:
            self._courier.due = 0.0
            self._safely(self._observe)
            self._courier = None

    def _observe(self) -> None:
        if self._courier:
            self._courier.observe()

    def _start(self, message: Message) -> None:
        self.leave()
        self._run, self._folder = message["run"], message["folder"]
        info = card.load(Path(message["folder"]))
        self._courier = Courier(info, Place(**message["place"]), message["every_s"], message["wait_s"])
        self._courier.start()

    def _finish(self, status: str, *, past: bool) -> None:
        courier, self._courier = self._courier, None
        if courier:
            courier.finish(status, past=past)

    def _safely(self, action: Callable[[], None]) -> None:
        try:
            action()
        except FedcohortError as error:
            self._courier = None
            self.say(refused=str(error))
        except Exception as error:
            self._courier = None
            again = f"{fedcohort('sync')} {shlex.quote(self._folder)}"
            what = f"MLflow has no more of this run ({type(error).__name__}: {error})"
            self.say(level=logging.WARNING, text=f"{what}; `{again}` sends what is missing")


class _Said(logging.Handler):
    """What the package logs is said by the run, on its terminal and in its log file."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def emit(self, record: logging.LogRecord) -> None:
        self._desk.say(level=record.levelno, text=record.getMessage())


def serve(source: int, output: int) -> None:
    """Work until nobody can write to `source` any more."""
    desk, lines = Desk(output), _Lines()
    logger = logging.getLogger("fedcohort")
    logger.addHandler(_Said(desk))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    preload()
    threading.Thread(target=_end_after, args=(source,), daemon=True).start()
    while True:
        if select.select([source], [], [], desk.timeout())[0]:
            data = os.read(source, BYTES)
            if not data:
                break
            for line in lines.whole(data):
                desk.take(line)
        desk.work()
    desk.leave()


def _end_after(source: int) -> None:
    """End this process LAST_S seconds after the last writer of `source` has ended."""
    hangup = select.poll()
    hangup.register(source, 0)
    hangup.poll()
    time.sleep(LAST_S)
    os._exit(1)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # they are for the run: it says when it has ended
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.nice(NICE)
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no message
    serve(0, output)


if __name__ == "__main__":
    main()
