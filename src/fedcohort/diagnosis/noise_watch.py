"""Two looks at label noise: whether a gap persists, so that it comes from wrong labels and not from other data.

    acts:  at a look with gap >= threshold and gap >= persistence times the gap of the look before
    releases:  later, for good, at a look with gap < persistence times the largest gap since

A domain is learnt under random selection, and its gap falls; that of wrong labels stays.
"""

import math
from dataclasses import dataclass, replace

JOBS_BEFORE_PROBE = 1.2  # of a client on average, before the first probe


@dataclass(frozen=True)
class NoiseWatch:
    """What the looks so far have shown.

    Attributes:
        n_looks: number of probes that count.
        last_gap: gap of the last probe that counted; NaN before.
        largest_gap: largest gap since clients were excluded; 0 before.
        is_acting: whether clients are excluded for label noise.
        is_released: whether excluded clients were released for good.
        is_suspected: whether a gap was seen, or a probe did not count, and no client is excluded.
        is_done: whether no further look is needed.
    """

    n_looks: int = 0
    last_gap: float = float("nan")
    largest_gap: float = 0.0
    is_acting: bool = False
    is_released: bool = False
    is_suspected: bool = False
    is_done: bool = False

    def after_invalid(self) -> "NoiseWatch":
        """Return what is known after a probe at which the model did not tell right labels from wrong ones."""
        return self if self.is_acting else replace(self, is_suspected=True)

    def after(self, gap: float, threshold: float, persistence: float) -> "NoiseWatch":
        """Return what is known after a valid probe with this gap.

        The first look ends the watch if its gap is below half of the threshold.
        """
        is_first, previous_gap = self.n_looks == 0, self.last_gap
        watch = replace(self, n_looks=self.n_looks + 1, last_gap=gap)
        if self.is_acting:
            if gap < persistence * self.largest_gap:
                return replace(watch, is_acting=False, is_released=True, is_done=True)
            return replace(watch, largest_gap=max(gap, self.largest_gap))
        persists = not is_first and gap >= threshold and gap >= persistence * previous_gap
        return replace(
            watch,
            is_acting=persists,
            largest_gap=gap if persists else 0.0,
            is_suspected=gap >= threshold and not persists,
            is_done=is_first and gap < threshold / 2,
        )

    @property
    def consequence(self) -> str:
        """What follows from the probes so far, for the log."""
        if self.is_acting:
            return "the clients with more wrong labels are left out, but for probation"
        if self.is_released:
            return "the gap fell, so that the clients left out are released"
        return "a further probe shows whether it persists" if self.is_suspected else "no clients are left out"


def rounds_between_probes(first: int, n_clients: int, cohort: int) -> int:
    """Return R: at least `first`, and so many rounds that clients have had 1.2 jobs on average."""
    return max(first, math.ceil(JOBS_BEFORE_PROBE * n_clients / cohort))
