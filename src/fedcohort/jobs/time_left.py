"""Estimate the wall time of runs from similar runs that are done, such as those of the same selector."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from statistics import median
from typing import Generic, TypeVar

T = TypeVar("T")


class WallTimeEstimate(Generic[T]):
    """An estimate of the wall time of runs: the median over finished runs of the most similar group."""

    def __init__(self, list_run_groups: Callable[[T], Sequence[Hashable]]) -> None:
        """Start without finished runs.

        Args:
            list_run_groups: function that returns the groups of a run, the group with the most similar runs first.
        """
        self._list_run_groups = list_run_groups
        self._seconds: defaultdict[Hashable, list[float]] = defaultdict(list)

    @property
    def has_estimate(self) -> bool:
        """Whether a finished run was added, so that there is an estimate."""
        return bool(self._seconds)

    def add_run(self, finished_run: T, wall_s: float) -> None:
        """Add `finished_run`, which took `wall_s` seconds of wall time."""
        for run_group in self._list_run_groups(finished_run):
            self._seconds[run_group].append(wall_s)

    def estimate_seconds(self, runs: Iterable[T]) -> float:
        """Return the estimated seconds for all `runs` in sequence; a run without similar finished runs counts as 0."""
        group_times = (
            [self._seconds[group] for group in self._list_run_groups(run) if group in self._seconds] for run in runs
        )
        return sum(median(group_seconds[0]) for group_seconds in group_times if group_seconds)
