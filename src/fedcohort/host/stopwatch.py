"""Measurement of a round's wall time by stage, which costs a few clock reads per round and is always on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

STAGES = ("select", "probe", "train", "aggregate", "evaluate", "log", "checkpoint")


class Stopwatch:
    """Measures seconds by stage; the time of an inner stage does not count for the outer one."""

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
        """Return the seconds by stage since the last lap."""
        spent, self.spent = self.spent, dict.fromkeys(STAGES, 0.0)
        return spent

    def _switch(self) -> None:
        """Add the time since the last switch to the current stage."""
        now = time.perf_counter()
        if self._running:
            self.spent[self._running[-1]] += now - self._since
        self._since = now
