"""Where a round's wall time goes. A few clock reads a round: always on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

STAGES = ("select", "probe", "train", "aggregate", "evaluate", "log", "checkpoint")


class Stopwatch:
    """Seconds by stage; a stage inside another counts in itself alone."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._switch()
        self._running.append(name)
        try:
            yield
        finally:
            self._switch()
            self._running.pop()

    def lap(self) -> dict[str, float]:
        """Seconds by stage since the last lap."""
        spent, self.spent = self.spent, dict.fromkeys(STAGES, 0.0)
        return spent

    def _switch(self) -> None:
        """Book the time since the last switch to whatever was running."""
        now = time.perf_counter()
        if self._running:
            self.spent[self._running[-1]] += now - self._since
        self._since = now
