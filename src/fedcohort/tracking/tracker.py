"""The observer of `logger=mlflow`: it starts the process that sends the run's journal to MLflow."""

import logging
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

from fedcohort import ranges
from fedcohort.errors import TrackingError
from fedcohort.host.commands import fedcohort
from fedcohort.record import card
from fedcohort.record.history import expect
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.tracking import server
from fedcohort.tracking.follow import Channel, command_to_send
from fedcohort.tracking.identity import is_complete, register
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
QUIET_S = 10.0  # seconds of waiting before a message names what is waited for


class Follower:
    """The child process that sends journals (`tracking/follow.py`). Forked processes may use their parent's."""

    def __init__(self) -> None:
        """Start it. Raises `OSError` where there are no more processes or no more memory."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fedcohort.tracking.follow"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the run, which then ends the follower
        )
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the follower has no pipes")
        self.channel = Channel(self.process.stdout.fileno(), self.process.stdin.fileno())

    def end(self) -> None:
        """Kill it: perhaps it waits for a server that does not answer."""
        self.process.kill()
        self.process.wait()


class MlflowTracker(Observer):
    """Have the journal sent to MLflow by a child process, which the end of the run waits for.

    Attributes:
        tracking_uri: null for a SQLite file in `logs`.
        every_s: seconds between two sends, 0 to send each round at once.
        wait_s: seconds that one send may take, and that the end of a run waits in all.

    Raises `OptionError` for an address that MLflow refuses. A server that is gone is no error: the metrics are in the
    run folder, and what MLflow lacks is sent when the server is back, by a resume, or by `fedcohort sync`.
    """

    _follower: ClassVar[Follower | None] = None  # the runs of a process share one: MLflow's import takes seconds

    def __init__(self, *, tracking_uri: str | None, experiment: str, every_s: float, wait_s: float, logs: str) -> None:
        ranges.number("every_s", every_s, "[0, inf)")
        ranges.number("wait_s", wait_s, "(0, inf)")
        ranges.text("tracking_uri", tracking_uri, optional=True)
        ranges.text("logs", logs)
        self._every_s, self._wait_s = every_s, wait_s
        self._place = server.place(tracking_uri, experiment, Path(logs))
        self._folder: Path | None = None  # of the run that is followed, None once that is done
        self._problem = ""

    def opening_line(self) -> str:
        """Return the command or the address that shows the runs."""
        if self._place.uri.startswith("http"):
            return self._place.uri
        options = server.options_of(self._place)
        return shlex.join([*fedcohort("ui").split(), *(f"{name}={value}" for name, value in options.items())])

    def prepare(self) -> None:
        """Start the follower, which imports MLflow while this process imports torch."""
        try:
            MlflowTracker._follower = MlflowTracker._follower or Follower()
            self._problem = ""
        except OSError as error:
            self._problem = f"no process for MLflow can be started ({error})"

    def start(self, info: RunInfo) -> None:
        """Have the run followed. Raises `IncompatibleConfig` where there is no journal."""
        expect(info.folder, "logger=mlflow")
        register(info.folder, self._place)
        self._folder = info.folder
        if not self._begin():  # it has died since the last run
            self._begin()

    def observe(self, report: RoundReport) -> None:
        """Say what the follower has to say. Raises `TrackingError` where the experiment was deleted."""
        if self._folder is not None and self._read(0) and self._problem:
            raise TrackingError(self._problem)

    def finish(self, status: str) -> None:
        """Wait at most `wait_s` seconds until MLflow has the run; otherwise name the command that sends the rest."""
        folder, end = self._folder, time.monotonic() + self._wait_s
        if folder is None:
            return
        again = command_to_send(folder)
        if not self._end(status, end, again) and time.monotonic() < end and self._begin():
            self._end(status, end, again)  # it was killed, perhaps for its memory: another one sends all that is left
        if self._folder is not None and MlflowTracker._follower is not None:
            MlflowTracker._follower.end()
            MlflowTracker._follower = None
            limit = f"did not take the rest of this run within logger.wait_s={self._wait_s:g} seconds"
            self._problem = f"MLflow at {self._place.uri} {limit}"
        elif self._folder is not None:
            self._problem = self._problem or "the process that sends to MLflow has died"
        self._folder = None
        if self._problem:
            log.warning("%s; `%s` sends what is missing", self._problem, again)

    def catch_up(self, folder: Path) -> None:
        """Send what MLflow lacks of a run that finished before."""
        if (folder / card.NAME).exists() and not is_complete(folder, self._place):
            self.start(card.load(folder))
            self.finish("finished")

    def _begin(self) -> bool:
        """Name the run to the follower, a new one where there is none; return whether it could be named."""
        self.prepare()
        return self._write(folder=str(self._folder), every_s=self._every_s, wait_s=self._wait_s)

    def _end(self, status: str, end: float, again: str) -> bool:
        """Tell the follower how the run ended; return whether it was done by the time `end`."""
        if not self._write(status=status):
            return False
        done = self._read(min(end - time.monotonic(), QUIET_S))
        if not done and MlflowTracker._follower is not None and time.monotonic() < end:
            text = "waiting for MLflow at %s, at most %g s (logger.wait_s); `%s` sends the rest later"
            log.info(text, self._place.uri, self._wait_s, again)
            done = self._read(end - time.monotonic())
        return done

    def _write(self, **message: object) -> bool:
        """Return whether the follower lives and could be written to."""
        try:
            if MlflowTracker._follower is not None:
                MlflowTracker._follower.channel.write(**message)
            return MlflowTracker._follower is not None
        except BrokenPipeError:
            MlflowTracker._follower = None
            return False

    def _read(self, timeout_s: float) -> bool:
        """Pass on what the follower says for at most `timeout_s` seconds; return whether it is done with the run."""
        end = time.monotonic() + timeout_s
        try:
            while MlflowTracker._follower is not None:
                message = MlflowTracker._follower.channel.read(max(0.0, end - time.monotonic()))
                if message is None:
                    return False
                if "text" in message:
                    log.log(message["level"], "%s", message["text"])
                elif message["done"] == str(self._folder):  # a killed process may have left others in a shared pipe
                    self._folder, self._problem = None, message["refusal"]
                    return True
        except EOFError:
            MlflowTracker._follower = None
        return False
