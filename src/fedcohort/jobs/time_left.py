"""Estimate the wall time of runs from similar runs that are done, such as those of the same selector."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import median
from typing import Generic, TypeVar

T = TypeVar("T")


class TimeLeft(Generic[T]):
    """Estimates of the wall seconds of runs: the median of the most similar group with runs that are done."""

    def __init__(self, list_groups: Callable[[T], Sequence[Hashable]]) -> None:
        """Store `list_groups`, which returns the groups of a run, the group with the most similar runs first."""
        self._groups_of = list_groups
        self._seconds: defaultdict[Hashable, list[float]] = defaultdict(list)

    @property
    def is_known(self) -> bool:
        """Whether any run is done."""
        return bool(self._seconds)

    def add(self, run: T, seconds: float) -> None:
        """Add the wall time of a run that is done."""
        for group in self._groups_of(run):
            self._seconds[group].append(seconds)

    def seconds(self, runs: Iterable[T]) -> float:
        """Return the estimated wall time of `runs`, one after the other; 0 if nothing is known."""
        groups = ([self._seconds[group] for group in self._groups_of(run) if group in self._seconds] for run in runs)
        return sum(median(seconds[0]) for seconds in groups if seconds)
