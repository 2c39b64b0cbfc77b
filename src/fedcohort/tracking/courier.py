"""Carries a run's journal to MLflow: when to send, and what to do while the server is gone."""

import logging
import math
import shlex
import time
from collections.abc import Callable

from fedcohort.host.commands import fedcohort
from fedcohort.host.time_limit import time_limit
from fedcohort.record import history
from fedcohort.record.observer import RunInfo
from fedcohort.tracking import server
from fedcohort.tracking.feed import Feed, open_feed
from fedcohort.tracking.identity import complete, register

log = logging.getLogger("fedcohort")
SHARE = 0.05  # of the time at most goes into sending, however slow the server
LONGEST_PAUSE_S = 600.0


class Courier:
    """Sends the journal's new rounds every few seconds, the run's files at the end.

    every_s: seconds between sends, 0 sends after every round. wait_s: seconds that one of them may take. A server that
    is gone is no error: what it lacks is sent when it is back.
    """

    def __init__(self, info: RunInfo, place: server.Place, every_s: float, wait_s: float) -> None:
        self.info, self.place, self.every_s, self.wait_s = info, place, every_s, wait_s
        self.due = 0.0
        self._feed: Feed | None = None
        self._failures = 0

    def start(self) -> None:
        """Find or make the run. Raises `TrackingError` where the experiment was deleted."""
        register(self.info.folder, self.place)
        self._attempt(self._send)
        if not self._failures:  # what imports and connecting took says nothing of what sending takes
            self.due = time.monotonic() + self.every_s

    def observe(self) -> None:
        """Send what the journal has gained, when it is time to."""
        if time.monotonic() >= self.due:
            self._attempt(self._send)

    def finish(self, status: str, *, past: bool = False) -> None:
        """Send the rest and the files, and end the MLflow run, now or (`past`) when its last round was committed.

        One whose folder goes is deleted.
        """

        def close() -> None:
            self._send().close(self.info, status, history.last_ms(self.info.folder) if past else None)
            complete(self.info.folder, self.place)

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
            if not self._failures:  # once an outage
                self._warn(server.reason(error))
            self._failures += 1
        self.due = time.monotonic() + self._pause(time.monotonic() - began)

    def _pause(self, took: float) -> float:
        """Return the seconds until the next send.

        They are more where sending is slow, and double with each failure.
        """
        if not self._failures:
            return max(self.every_s, took / SHARE) if self.every_s else 0.0
        doubled = max(self.every_s, took / SHARE, 1.0) * math.ldexp(1.0, min(self._failures, 10))
        return min(doubled, max(LONGEST_PAUSE_S, took / SHARE))

    def _warn(self, reason: str) -> None:
        log.warning(
            "MLflow at %s can't be reached (%s). The run goes on: its metrics stay in %s, and `%s %s` "
            "sends them later.",
            self.place.uri,
            reason,
            self.info.folder,
            fedcohort("sync"),
            shlex.quote(str(self.info.folder)),
        )
