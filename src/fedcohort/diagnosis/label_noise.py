"""The test for a group of clients with more label noise than the others, and the pool of clients without them.

    groups:  the cut of the sorted excess losses b with the largest variance between groups (Otsu 1979)
    gap:  (mean of b above the cut - mean below it) / D, a rate of wrong labels
    pool:  the clients below the cut, and for a class of which these have too few samples, others with low excess losses

The gap is the smaller one of two fits (`excess_loss.py`), as each is misled by another kind of class skew.

Several probes decide whether clients have wrong labels: a gap that persists is not caused by other data.

    exclude clients:  at a probe with gap >= threshold and gap >= persistence times the gap of the previous probe
    readmit them:  later, for good, at a probe with gap < persistence times the largest gap since the exclusion

Under random selection the model learns the data of all clients. A gap that comes from different inputs then falls, and
a gap that comes from wrong labels stays.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.diagnosis.excess_loss import ClassLosses, ExcessLoss, fit_by_class, fit_by_sums
from fedcohort.types import Values

MIN_LOSS_GAP = 0.2  # nats; below this D the model does not tell right labels from wrong ones yet
MAX_RATE_GAP = 1.15  # a larger difference of rates is impossible: the model does not tell yet
MEAN_JOBS_BEFORE_PROBE = 1.2  # of a client on average, before the first probe
MIN_CLASS_SHARE = 2.0  # a client holds a class if its share there is this multiple of 1 / C


@dataclass(frozen=True)
class NoiseEstimate:
    """The label noise of n clients, estimated from one probe: a query of all clients' losses by class.

    Attributes:
        fit: excess loss of each client, fitted with numbers of samples per class.
        is_noisier: whether each client is in the group with more wrong labels, bool [n].
        gap: difference between the mean rates of wrong labels of the two groups; NaN while the model cannot distinguish
            right labels from wrong ones.
    """

    fit: ExcessLoss
    is_noisier: Bool[np.ndarray, "_n"]
    gap: float

    @property
    def is_valid(self) -> bool:
        """Whether `gap` is meaningful: wrong labels raise a loss by 0.2 nats or more, and `gap` is at most 1.15."""
        return self.fit.nats_per_wrong_label >= MIN_LOSS_GAP and self.gap <= MAX_RATE_GAP


def estimate_noise(losses: ClassLosses) -> NoiseEstimate:
    """Return the label noise that the reports `losses` show; at least one client must have samples."""
    class_fit, sum_fit = fit_by_class(losses), fit_by_sums(losses)
    is_noisier, class_fit_gap = split_into_two_groups(class_fit.excess)
    _, sum_fit_gap = split_into_two_groups(sum_fit.excess)
    class_fit_nats, sum_fit_nats = class_fit.nats_per_wrong_label, sum_fit.nats_per_wrong_label
    is_gap_known = class_fit_nats > 0 and sum_fit_nats > 0
    rate_gap = min(class_fit_gap / class_fit_nats, sum_fit_gap / sum_fit_nats) if is_gap_known else math.nan
    return NoiseEstimate(class_fit, is_noisier, rate_gap)


def split_into_two_groups(client_values: Values) -> tuple[Bool[np.ndarray, "_n"], float]:
    """Return whether each of `client_values` [n] is in the upper of two groups, bool [n], and the difference of means.

    Groups may hold one value. All equal values are one group, the lower one.

    The split maximises the variance between the groups.
    """
    sorted_values = np.sort(client_values)
    n, n_lower = len(client_values), np.arange(1, len(client_values))
    if n < 2 or sorted_values[0] == sorted_values[-1]:
        return np.zeros(n, dtype=bool), 0.0
    lower_group_sums = np.cumsum(sorted_values)[:-1]
    group_mean_differences = (sorted_values.sum() - lower_group_sums) / (n - n_lower) - lower_group_sums / n_lower
    split_position = int(np.argmax(n_lower * (n - n_lower) * group_mean_differences**2))
    return client_values > sorted_values[split_position], float(group_mean_differences[split_position])


def choose_pool(
    noise_estimate: NoiseEstimate, class_counts: Float64[np.ndarray, "_n _c"], min_pool_share: float, class_cover: float
) -> Bool[np.ndarray, "_n"]:
    """Return whether each client is in the pool from which cohorts are drawn, bool [n].

    Args:
        noise_estimate: label noise of the n clients.
        class_counts: samples by client and class, [n, C].
        min_pool_share: least share of the clients in the pool, in [0, 1]; those with the least excess loss join if it
            is smaller.
        class_cover: for each class, the least ratio of the pool's share of its samples to the pool's share of all
            samples. Noisier clients that hold much of a class join until then, those with the least excess loss first.
            None joins whose excess loss is above the mean of the clients left out.
    """
    excess_losses, is_noisier = noise_estimate.fit.excess, noise_estimate.is_noisier
    ids_by_excess_loss = np.argsort(excess_losses, kind="stable")
    min_pool_size, in_pool = math.ceil(min_pool_share * len(excess_losses)), ~is_noisier
    if in_pool.sum() < min_pool_size:
        in_pool = np.isin(np.arange(len(excess_losses)), ids_by_excess_loss[:min_pool_size])
    mean_excess_outside = float(excess_losses[~in_pool].mean()) if not in_pool.all() else np.inf
    n_samples, class_totals = class_counts.sum(1), class_counts.sum(0)
    class_shares = class_counts / np.maximum(n_samples, 1.0)[:, None]
    may_join = excess_losses < mean_excess_outside
    for c in range(class_counts.shape[1]):
        may_hold_class = may_join & (class_shares[:, c] >= MIN_CLASS_SHARE / class_counts.shape[1])
        holder_ids = ids_by_excess_loss[may_hold_class[ids_by_excess_loss]]
        for joining_client in holder_ids[~in_pool[holder_ids]].tolist():
            if _is_class_covered(in_pool, class_counts[:, c], n_samples, class_totals[c], class_cover):
                break
            in_pool[joining_client] = True
    return in_pool


def _is_class_covered(
    in_pool: Bool[np.ndarray, "_n"], class_counts: Values, n_samples: Values, n_class_samples: float, class_cover: float
) -> bool:
    """Return whether the pool's share of a class is at least `class_cover` times its share of all samples.

    Args:
        in_pool: whether each client is in the pool, [n].
        class_counts: samples of the class at each client, [n].
        n_samples: samples of all classes at each client, [n].
        n_class_samples: samples of the class at all clients.
        class_cover: least ratio of the pool's share of the class to its share of all samples.
    """
    pool_share = float(n_samples[in_pool].sum()) / float(n_samples.sum())
    return float(class_counts[in_pool].sum()) >= class_cover * n_class_samples * pool_share


def covers_all_classes(
    in_pool: Bool[np.ndarray, "_n"], class_counts: Float64[np.ndarray, "_n _c"], class_cover: float
) -> bool:
    """Return whether the pool's share of every class is at least `class_cover` times its share of all samples.

    Args:
        in_pool: whether each client is in the pool, [n].
        class_counts: samples by client and class, [n, C].
        class_cover: least ratio of the pool's share of a class to its share of all samples.
    """
    n_samples = class_counts.sum(1)
    return all(_is_class_covered(in_pool, c, n_samples, float(c.sum()), class_cover) for c in class_counts.T)


@dataclass(frozen=True)
class NoiseMonitor:
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

    def with_invalid_probe(self) -> "NoiseMonitor":
        """Return this record after a probe at which the model did not distinguish right labels from wrong ones."""
        return self if self.is_acting else replace(self, is_suspected=True)

    def with_probe(self, rate_gap: float, gap_threshold: float, persistence: float) -> "NoiseMonitor":
        """Return this record after a probe at which the model distinguished right labels from wrong ones.

        After a first probe with a gap below half of the threshold no further one is needed.

        Args:
            rate_gap: difference between the mean rates of wrong labels of two groups of clients.
            gap_threshold: least gap for which clients are excluded.
            persistence: least ratio of the gap to that of the previous probe for which clients are excluded.
        """
        is_first_probe, previous_gap = self.n_looks == 0, self.last_gap
        updated_monitor = replace(self, n_looks=self.n_looks + 1, last_gap=rate_gap)
        if self.is_released:
            return updated_monitor
        if self.is_acting:
            if rate_gap < persistence * self.largest_gap:
                return replace(updated_monitor, is_acting=False, is_released=True, is_done=True)
            return replace(updated_monitor, largest_gap=max(rate_gap, self.largest_gap))
        gap_persists = not is_first_probe and rate_gap >= gap_threshold and rate_gap >= persistence * previous_gap
        return replace(
            updated_monitor,
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
    return max(min_probe_interval, math.ceil(MEAN_JOBS_BEFORE_PROBE * n_clients / cohort_size))
