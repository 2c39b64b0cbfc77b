"""MLflow, fed from the journal: exactly once, buffered, and never in the way of the run."""

import logging
import shlex
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from fedcohort import ranges
from fedcohort.errors import TrackingError
from fedcohort.host.commands import command, fedcohort
from fedcohort.record import card
from fedcohort.record.history import expect
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.tracking import server, worker
from fedcohort.tracking.identity import is_complete, register
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
REVIVALS = 2  # of the worker, in a run: one that dies of the run itself is not started for ever
QUIET_S = 10.0  # seconds of waiting before a message says what is waited for


class MlflowTracker(Observer):
    """Has the journal's new rounds sent every few seconds, the run's files at the end, by a process beside the run.

    Attributes:
        tracking_uri: null for a SQLite file in `logs`.
        every_s: seconds between sends, 0 sends after every round.
        wait_s: seconds that one send may take, and for which the end of a run waits in all.

    Raises `OptionError` for an address that MLflow refuses. A server that is gone is no error: the metrics are in the
    run folder, and what it lacks is sent when it is back, by the next process, or by `fedcohort sync`.
    """

    _worker: ClassVar[worker.Worker | None] = None  # the process's runs share one

    def __init__(self, *, tracking_uri: str | None, experiment: str, every_s: float, wait_s: float, logs: str) -> None:
        ranges.number("every_s", every_s, "[0, inf)")
        ranges.number("wait_s", wait_s, "(0, inf)")
        ranges.text("tracking_uri", tracking_uri, optional=True)
        ranges.text("logs", logs)
        self._every_s, self._wait_s = every_s, wait_s
        self._place = server.place(tracking_uri, experiment, Path(logs))
        self._folder: Path | None = None
        self._run = ""
        self._ended = False
        self._refused = ""
        self._started: worker.Message = {}
        self._revivals = REVIVALS

    def opening_line(self) -> str:
        """What a person runs, or opens, to see the runs."""
        if self._place.uri.startswith("http"):
            return self._place.uri
        return f"{command('mlflow')} ui --backend-store-uri {shlex.quote(self._place.uri)}"

    def prepare(self) -> None:
        """Start the worker, which imports MLflow while this process imports torch; it writes nothing yet."""
        try:
            MlflowTracker._worker = MlflowTracker._worker or worker.Worker()
            self._refused = ""
        except OSError as error:  # no more processes, no more memory
            self._refused = f"no process for MLflow can be started ({error})"

    def start(self, info: RunInfo) -> None:
        """Have the run found or made. Raises `IncompatibleConfig` where there is no journal."""
        expect(info.folder, "logger=mlflow")
        register(info.folder, self._place)
        self._folder, self._run, self._ended, self._revivals = info.folder, uuid.uuid4().hex, False, REVIVALS
        self._started = worker.start_message(self._run, info.folder, self._place, self._every_s, self._wait_s)
        self.prepare()
        if not self._tell(self._started):  # it has died since the last run
            self._revive()

    def observe(self, report: RoundReport) -> None:
        """Say that the journal has gained a line. Raises `TrackingError` where the experiment was deleted."""
        if MlflowTracker._worker is None or self._ended:
            return
        if not MlflowTracker._worker.poke():
            self._revive()
            return
        self._pass_on(MlflowTracker._worker.hear(until=0))
        if self._ended:
            raise TrackingError(self._refused)

    def finish(self, status: str, *, past: bool = False) -> None:
        """Wait until the rest and the files are sent and the MLflow run is ended; one whose folder goes is deleted.

        It takes at most `wait_s` seconds. past: the run has ended when its last round was committed, not now.
        """
        if self._folder is None or self._ended:
            return
        end = time.monotonic() + self._wait_s
        again = f"{fedcohort('sync')} {shlex.quote(str(self._folder))}"
        while MlflowTracker._worker is not None and not self._ended:
            if self._tell(worker.finish_message(self._run, status, past=past)):
                self._wait(MlflowTracker._worker, end, again)
            if not self._ended and time.monotonic() >= end:
                MlflowTracker._worker.end()
                MlflowTracker._worker = None
                why = f"did not take the rest of this run within logger.wait_s={self._wait_s:g} seconds"
                self._refused = f"MLflow at {self._place.uri} {why}"
            elif not self._ended:
                self._revive()
        if not self._ended:
            self._ended = True
            self._refused = self._refused or "the process that sends to MLflow has died"
        if self._refused:
            log.warning("%s; `%s` sends what is missing", self._refused, again)

    def _wait(self, process: worker.Worker, end: float, again: str) -> None:
        """Pass on what the worker says until the run is sent, the worker has died, or the time is `end`."""
        self._pass_on(process.hear(min(end, time.monotonic() + QUIET_S)))
        if not self._ended and process.lives() and time.monotonic() < end:
            text = "waiting for MLflow at %s, at most %g s (logger.wait_s); `%s` sends the rest later"
            log.info(text, self._place.uri, self._wait_s, again)
            self._pass_on(process.hear(end))

    def catch_up(self, folder: Path) -> None:
        """Send what MLflow lacks of a run that finished before, where it lacks anything."""
        if (folder / card.NAME).exists() and not is_complete(folder, self._place):
            self.start(card.load(folder))
            self.finish("finished", past=True)

    def _revive(self) -> None:
        """Another worker in the place of one that died: it begins with what the journal has, and nothing is lost."""
        MlflowTracker._worker = None
        if self._revivals:
            self._revivals -= 1
            self.prepare()
            self._tell(self._started)

    def _tell(self, message: worker.Message) -> bool:
        until = time.monotonic() + self._wait_s
        return MlflowTracker._worker is not None and MlflowTracker._worker.tell(message, until)

    def _pass_on(self, messages: Iterable[worker.Message]) -> None:
        """Say what the worker has to say of this run, until it is done with it."""
        for message in messages:
            if message["run"] != self._run:
                continue
            if "text" in message:
                log.log(message["level"], "%s", message["text"])
            self._refused = message.get("refused", self._refused)
            if "refused" in message or "done" in message:
                self._ended = True
                return
