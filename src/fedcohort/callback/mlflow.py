"""MLflow, fed from the journal: exactly once, buffered, and never in the way of the run."""

import logging
import math
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from fedcohort import ranges
from fedcohort.callback.base import RunInfo
from fedcohort.callback.history import expect
from fedcohort.callback.tracking import server
from fedcohort.callback.tracking.feed import Feed, open_feed
from fedcohort.callback.tracking.identity import register
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
SHARE = 0.05  # of the run's time at most goes into sending, however slow the server
LONGEST_PAUSE_S = 600.0


class MlflowTracker:
    """Sends the journal's new rounds every few seconds, the run's files at the end.

    tracking_uri: null for a SQLite file in `logs`. every_s: seconds between sends, 0 sends after every round.
    Raises `OptionError` for an address that MLflow refuses. A server that is gone is no error: the metrics are in the
    run folder, and what it lacks is sent when it is back, by the next process, or by `python -m fedcohort.sync`.
    """

    def __init__(self, *, tracking_uri: str | None, experiment: str, every_s: float, logs: str) -> None:
        ranges.number("every_s", every_s, "[0, inf)")
        self._every_s = every_s
        self._place = server.place(tracking_uri, experiment, Path(logs))
        self._info: RunInfo | None = None
        self._feed: Feed | None = None
        self._due = 0.0
        self._failures = 0

    def opening_line(self) -> str:
        """What a person runs, or opens, to see the runs."""
        if self._place.uri.startswith("http"):
            return self._place.uri
        return f"mlflow ui --backend-store-uri {shlex.quote(self._place.uri)}"

    def start(self, info: RunInfo) -> None:
        """Find or make the run.

        Raises `TrackingError` where the experiment was deleted, `IncompatibleConfig` where there is no journal.
        """
        expect(info.folder, "logger=mlflow")
        self._info = info
        register(info.folder, self._place)
        self._attempt(self._send)
        if not self._failures:  # what imports and connecting took says nothing of what sending takes
            self._due = time.monotonic() + self._every_s

    def observe(self, report: RoundReport) -> None:
        """Send what the journal has gained, when it is time to."""
        if time.monotonic() >= self._due:
            self._attempt(self._send)

    def finish(self, status: str) -> None:
        """Send the rest and the files, and end the MLflow run."""
        if self._info is None:
            return

        def close() -> None:
            feed, info = self._send()
            feed.close(info, status)

        self._attempt(close)

    def _send(self) -> tuple[Feed, RunInfo]:
        if self._info is None:
            raise RuntimeError("observe before start")
        if self._feed is None:
            self._feed = open_feed(self._info, self._place)
        sent = self._feed.send()
        if self._failures:
            log.info("MLflow at %s answers again: %d rounds sent", self._place.uri, sent)
        return self._feed, self._info

    def _attempt(self, action: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            action()
            self._failures = 0
        except server.failures() as error:
            self._warn(error)
            self._failures += 1
        self._due = time.monotonic() + self._pause(time.monotonic() - began)

    def _pause(self, took: float) -> float:
        """Seconds until the next send: longer where sending is slow, and doubled with each failure."""
        if not self._failures:
            return max(self._every_s, took / SHARE) if self._every_s else 0.0
        doubled = max(self._every_s, took / SHARE, 1.0) * math.ldexp(1.0, min(self._failures, 10))
        return min(doubled, max(LONGEST_PAUSE_S, took / SHARE))

    def _warn(self, error: Exception) -> None:
        """Once an outage."""
        if self._failures or self._info is None:
            return
        log.warning(
            "MLflow at %s can't be reached (%s). The run goes on: its metrics stay in %s, and `python -m "
            "fedcohort.sync %s` sends them later.",
            self._place.uri,
            server.reason(error),
            self._info.folder,
            shlex.quote(str(self._info.folder)),
        )
