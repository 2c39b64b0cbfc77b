"""Send a run's journal to MLflow while the run goes on, in a process of its own, until the run has ended.

Importing MLflow takes seconds and a slow server minutes, which a run must not wait for. The journal says what there is
to send and MLflow says what it has, so a follower may be killed at any point. A run's process starts one follower
(`tracking/tracker.py`) and names each of its runs on the follower's standard input; when the run has ended, a second
line says how. A run that was killed says nothing: the follower's input ends and the run's lock is free.
"""

import json
import logging
import math
import os
import select
import shlex
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedcohort.errors import FedcohortError
from fedcohort.host.commands import fedcohort
from fedcohort.host.lock import is_held
from fedcohort.host.time_limit import time_limit
from fedcohort.record import card
from fedcohort.record.folder import status_of
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import identity, server
from fedcohort.tracking.feed import Feed, open_feed

log = logging.getLogger("fedcohort")
SHARE = 0.05  # largest share of the time that is spent on sending, however slow the server
LONGEST_PAUSE_S = 600.0
POLL_S = (0.1, 1.0)  # shortest and longest time between two looks at the journal and the lock
NICE = 5  # training comes first
LAST_S = 20.0  # seconds that a follower may live after the process that started it
Wait = Callable[[float], str | None]  # wait at most so many seconds, and return the run's status if it has ended


class Sender:
    """Send the new rounds of one run from time to time, and its files at the end.

    A server that is gone is no error: what it lacks is sent when it is back.

    Attributes:
        every_s: seconds between two sends; 0 sends at each call.
        wait_s: seconds that one send may take.
        due: the time of the next send, on `time.monotonic`.
    """

    def __init__(self, info: RunInfo, place: server.Place, every_s: float, wait_s: float) -> None:
        self.info, self.place, self.every_s, self.wait_s = info, place, every_s, wait_s
        self.due = 0.0
        self._feed: Feed | None = None
        self._failures = 0

    def start(self) -> None:
        """Find or create the MLflow run. Raises `TrackingError` where the experiment was deleted."""
        identity.register(self.info.folder, self.place)
        self._attempt(self._send)
        if not self._failures:  # the time of imports and of connecting does not predict that of sending
            self.due = time.monotonic() + self.every_s

    def observe(self) -> None:
        """Send what the journal has gained, if a send is due."""
        if time.monotonic() >= self.due:
            self._attempt(self._send)

    def finish(self, status: str) -> None:
        """Send the rest and the files, and end the MLflow run; that of a run whose folder is removed is deleted."""

        def close() -> None:
            self._send().close(self.info, status)
            identity.complete(self.info.folder, self.place)

        def delete() -> None:
            if self._feed is not None:
                self._feed.client.set_terminated(self._feed.run_id, "KILLED")
                self._feed.client.delete_run(self._feed.run_id)

        self._attempt(delete if status == "dropped" else close)

    def _send(self) -> Feed:
        if self._feed is None:
            self._feed = open_feed(self.info, self.place)
        count = self._feed.send()
        if self._failures:
            log.info("MLflow at %s answers again: %d rounds sent", self.place.uri, count)
        return self._feed

    def _attempt(self, action: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            with time_limit(self.wait_s, "sending (logger.wait_s)"):
                action()
            self._failures = 0
        except server.failures() as error:
            if not self._failures:  # one message for each outage
                log.warning(
                    "MLflow at %s can't be reached (%s). The run goes on: its metrics stay in %s, and `%s` "
                    "sends them later.",
                    *(self.place.uri, server.reason(error), self.info.folder, command_to_send(self.info.folder)),
                )
            self._failures += 1
        self.due = time.monotonic() + self._pause(time.monotonic() - began)

    def _pause(self, took_s: float) -> float:
        """Return the seconds until the next send: more where sending is slow, and twice as many for each failure."""
        if not self._failures:
            return max(self.every_s, took_s / SHARE) if self.every_s else 0.0
        doubled = max(self.every_s, took_s / SHARE, 1.0) * math.ldexp(1.0, min(self._failures, 10))
        return min(doubled, max(LONGEST_PAUSE_S, took_s / SHARE))


def command_to_send(folder: Path) -> str:
    """Return the command that sends what MLflow lacks of the run in `folder`."""
    return f"{fedcohort('sync')} {shlex.quote(str(folder))}"


def status_at_end(folder: Path) -> str:
    """Return how a run ended whose lock is free; one that still says "running" was killed."""
    status = str(status_of(folder).get("status", "running"))
    return "interrupted" if status in ("running", "dropped") else status


def follow(folder: Path, every_s: float, wait_s: float, wait: Wait) -> None:
    """Send the run in `folder` until it has ended: `wait` says how, or its lock is free.

    Raises `TrackingError` where the experiment was deleted.
    """
    known = identity.load(folder)
    if known is None:
        raise ValueError(f"{folder} has no tracking server")
    sender = Sender(card.load(folder), known.place, every_s, wait_s)
    sender.start()
    status = None
    while status is None:
        shortest, longest = POLL_S
        status = wait(min(max(sender.due - time.monotonic(), shortest), longest))
        if status is None and not is_held(folder / "run.lock"):
            status = wait(0) or status_at_end(folder)
        if status is None:
            sender.observe()
    sender.finish(status)


class Channel:
    """Messages of two processes, JSON with one message a line; source, target: descriptors of two pipes."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._data = b""

    def write(self, **message: object) -> None:
        """Write a message. Raises `BrokenPipeError` where the other process has ended."""
        os.write(self._target, json.dumps(message).encode() + b"\n")

    def read(self, timeout_s: float | None) -> dict[str, Any] | None:
        """Return the next message, None after `timeout_s` seconds. Raises `EOFError` where no more can come."""
        end = time.monotonic() + (threading.TIMEOUT_MAX if timeout_s is None else timeout_s)
        while b"\n" not in self._data:
            if not select.select([self._source], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            data = os.read(self._source, 65_536)
            if not data:
                raise EOFError
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return dict(json.loads(line))


class _Relay(logging.Handler):
    """Have the run say what the package logs: on its terminal and in its log file."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(BrokenPipeError):  # the run has ended
            self._channel.write(level=record.levelno, text=record.getMessage())


def serve(channel: Channel) -> None:
    """Follow each run that the channel names, one after the other, until the channel ends."""

    def wait(seconds: float) -> str | None:
        try:
            message = channel.read(seconds)
        except EOFError:  # the run's process has ended, and its lock is free as soon as its children have, too
            time.sleep(min(seconds, POLL_S[0]))
            return None
        return message["status"] if message else None

    while True:
        try:
            message = channel.read(None)
        except EOFError:
            return
        if message is None or "folder" not in message:  # the status of a run that was given up
            continue
        folder, refusal = Path(message["folder"]), ""
        try:
            follow(folder, message["every_s"], message["wait_s"], wait)
        except FedcohortError as error:
            refusal = str(error)
        except Exception as error:  # a defect costs the run nothing
            log.warning(
                "MLflow has no more of this run (%s: %s); `%s` sends what is missing",
                *(type(error).__name__, error, command_to_send(folder)),
            )
        with suppress(BrokenPipeError):
            channel.write(done=str(folder), refusal=refusal)


def _exit_after_parent(source: int) -> None:
    """End this process LAST_S seconds after the last process that could write to `source` has ended."""
    hangup = select.poll()
    hangup.register(source, 0)
    hangup.poll()
    time.sleep(LAST_S)
    os._exit(1)


def main() -> None:
    """Run as the child of a run's process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # the run decides when it ends
    os.nice(NICE)
    channel = Channel(0, os.dup(1))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # a line that a library prints is no message
    log.addHandler(_Relay(channel))
    log.setLevel(logging.INFO)
    log.propagate = False
    threading.Thread(target=_exit_after_parent, args=(0,), daemon=True).start()
    server.preload()
    serve(channel)
    os._exit(0)  # the interpreter's own end takes longer than the run's


if __name__ == "__main__":
    main()
