"""Decide from several probes whether clients have wrong labels: a gap that persists is not caused by other data.

    exclude clients:  at a probe with gap >= threshold and gap >= persistence times the gap of the previous probe
    readmit them:  later, for good, at a probe with gap < persistence times the largest gap since the exclusion

The gap is the difference between the rates of wrong labels of two groups of clients (`label_noise.py`). Under random
selection the model learns the data of all clients. A gap that comes from different inputs then falls, and a gap that
comes from wrong labels stays.
"""

import math
from dataclasses import dataclass, replace

JOBS_BEFORE_PROBE = 1.2  # of a client on average, before the first probe


@dataclass(frozen=True)
class NoiseWatch:
    """The results of the probes so far, queries of all clients' losses by class, and the decision on label noise.

    Attributes:
        n_looks: number of probes at which the trained model distinguished right labels from wrong ones.
        last_gap: difference of the groups' rates of wrong labels at the last of these probes; NaN before.
        largest_gap: largest of these differences since clients were excluded; 0 before.
        is_acting: whether clients are excluded for label noise.
        is_released: whether excluded clients were released for good.
        is_suspected: whether another probe must show if a difference persists; no client is excluded meanwhile.
        is_done: whether no further probe is needed.
    """

    n_looks: int = 0
    last_gap: float = float("nan")
    largest_gap: float = 0.0
    is_acting: bool = False
    is_released: bool = False
    is_suspected: bool = False
    is_done: bool = False

    def with_invalid_probe(self) -> "NoiseWatch":
        """Return this record after a probe at which the model did not distinguish right labels from wrong ones."""
        return self if self.is_acting else replace(self, is_suspected=True)

    def with_probe(self, rate_gap: float, gap_threshold: float, persistence: float) -> "NoiseWatch":
        """Return this record after a probe at which the model distinguished right labels from wrong ones.

        After a first probe with a gap below half of the threshold no further one is needed.

        Args:
            rate_gap: difference between the mean rates of wrong labels of two groups of clients.
            gap_threshold: least gap for which clients are excluded.
            persistence: least ratio of the gap to that of the previous probe for which clients are excluded.
        """
        is_first_probe, previous_gap = self.n_looks == 0, self.last_gap
        updated_watch = replace(self, n_looks=self.n_looks + 1, last_gap=rate_gap)
        if self.is_acting:
            if rate_gap < persistence * self.largest_gap:
                return replace(updated_watch, is_acting=False, is_released=True, is_done=True)
            return replace(updated_watch, largest_gap=max(rate_gap, self.largest_gap))
        gap_persists = not is_first_probe and rate_gap >= gap_threshold and rate_gap >= persistence * previous_gap
        return replace(
            updated_watch,
            is_acting=gap_persists,
            largest_gap=rate_gap if gap_persists else 0.0,
            is_suspected=rate_gap >= gap_threshold and not gap_persists,
            is_done=is_first_probe and rate_gap < gap_threshold / 2,
        )

    @property
    def decision_text(self) -> str:
        """The decision that follows from the probes so far, as text for the log."""
        if self.is_acting:
            return "the clients with more wrong labels are left out, except for their probation places"
        if self.is_released:
            return "the difference has fallen: the excluded clients may be selected again"
        return "another probe must confirm the difference" if self.is_suspected else "no client is left out"


def rounds_between_probes(min_probe_interval: int, n_clients: int, cohort_size: int) -> int:
    """Return the rounds between two probes: `min_probe_interval`, or more so that clients train 1.2 times on average.

    Each of the rounds selects `cohort_size` of `n_clients` clients. A probe queries all clients' losses by class.
    """
    return max(min_probe_interval, math.ceil(JOBS_BEFORE_PROBE * n_clients / cohort_size))
