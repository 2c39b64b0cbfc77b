"""Measurement of a round's wall time by stage, which costs a few clock reads per round and is always on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

STAGE_NAMES = ("select", "probe", "train", "aggregate", "evaluate", "log", "checkpoint")


class Stopwatch:
    """A stopwatch that measures seconds by stage; the time of an inner stage does not count for the outer one.

    Attributes:
        seconds_by_stage: seconds of each of `STAGE_NAMES` since the last lap.
    """

    def __init__(self) -> None:
        self.seconds_by_stage = dict.fromkeys(STAGE_NAMES, 0.0)
        self._running_stages: list[str] = []
        self._since_s = 0.0

    @contextmanager
    def measure_stage_time(self, stage_name: str) -> Iterator[None]:
        self._add_elapsed_time()
        self._running_stages.append(stage_name)
        try:
            yield
        finally:
            self._add_elapsed_time()
            self._running_stages.pop()

    def take_lap_seconds(self) -> dict[str, float]:
        """Return the seconds by stage since the last lap, and begin the next lap."""
        lap_seconds_by_stage, self.seconds_by_stage = self.seconds_by_stage, dict.fromkeys(STAGE_NAMES, 0.0)
        return lap_seconds_by_stage

    def _add_elapsed_time(self) -> None:
        """Add the time since the last switch to the current stage."""
        now_s = time.perf_counter()
        if self._running_stages:
            self.seconds_by_stage[self._running_stages[-1]] += now_s - self._since_s
        self._since_s = now_s
