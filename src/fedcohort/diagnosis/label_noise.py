"""The test for a group of clients with more label noise than the others, and the pool of clients without them.

    groups:  the cut of the sorted excess losses b with the largest variance between groups (Otsu 1979)
    gap:  (mean of b above the cut - mean below it) / D, a rate of wrong labels
    pool:  the clients below the cut, and for a class of which they have too little the best of the others

The gap is the smaller one of two fits (`excess_loss.py`), as each is misled by another kind of class skew.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.diagnosis.excess_loss import ClassLosses, ExcessLoss, fit_by_class, fit_by_sums
from fedcohort.types import Values

MIN_SCALE = 0.2  # nats; below this D the model does not tell right labels from wrong ones yet
MAX_RATE_GAP = 1.15  # a larger difference of rates is impossible: the model does not tell yet
MIN_CLASS_SHARE = 2.0  # a client holds a class if its share there is this multiple of 1 / C


@dataclass(frozen=True)
class NoiseEstimate:
    """The label noise of n clients that the reports to one probe show.

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
        """Whether the model distinguishes right labels from wrong ones, so that `gap` is meaningful."""
        return self.fit.nats_per_wrong_label >= MIN_SCALE and self.gap <= MAX_RATE_GAP


def estimate_noise(losses: ClassLosses) -> NoiseEstimate:
    """Return the label noise that the reports `losses` show; at least one client must have samples."""
    loss_fit, secure_fit = fit_by_class(losses), fit_by_sums(losses)
    is_noisier, loss_difference = split_in_two(loss_fit.excess)
    _, secure_difference = split_in_two(secure_fit.excess)
    loss_nats, secure_nats = loss_fit.nats_per_wrong_label, secure_fit.nats_per_wrong_label
    is_known = loss_nats > 0 and secure_nats > 0
    rate_gap = min(loss_difference / loss_nats, secure_difference / secure_nats) if is_known else math.nan
    return NoiseEstimate(loss_fit, is_noisier, rate_gap)


def split_in_two(values: Values) -> tuple[Bool[np.ndarray, "_n"], float]:
    """Return whether each of `values` [n] is in the upper of two groups, bool [n], and the difference of group means.

    Groups may hold one value. All equal values are one group, the lower one.

    The split maximises the variance between the groups.
    """
    sorted_values = np.sort(values)
    n, n_low = len(values), np.arange(1, len(values))
    if n < 2 or sorted_values[0] == sorted_values[-1]:
        return np.zeros(n, dtype=bool), 0.0
    low_sums = np.cumsum(sorted_values)[:-1]
    mean_differences = (sorted_values.sum() - low_sums) / (n - n_low) - low_sums / n_low
    cut_position = int(np.argmax(n_low * (n - n_low) * mean_differences**2))
    return values > sorted_values[cut_position], float(mean_differences[cut_position])


def choose_pool(
    noise_estimate: NoiseEstimate, class_counts: Float64[np.ndarray, "_n _c"], min_share: float, class_cover: float
) -> Bool[np.ndarray, "_n"]:
    """Return whether each client is in the pool from which cohorts are drawn, bool [n].

    Args:
        noise_estimate: label noise of the n clients.
        class_counts: samples by client and class, [n, C].
        min_share: least share of the clients in the pool, in [0, 1]; those with the least excess loss join if it is too
            small.
        class_cover: for each class, the least ratio of the pool's share of its samples to the pool's share of all
            samples. Noisier clients that hold much of a class join until then, those with the least excess loss first.
            None joins whose excess loss is above the mean of the clients left out.
    """
    excess, is_noisier = noise_estimate.fit.excess, noise_estimate.is_noisier
    ranking, min_pool_size = np.argsort(excess, kind="stable"), math.ceil(min_share * len(excess))
    in_pool = ~is_noisier
    if in_pool.sum() < min_pool_size:
        in_pool = np.zeros(len(excess), dtype=bool)
        in_pool[ranking[:min_pool_size]] = True
    upper_mean = float(excess[~in_pool].mean()) if not in_pool.all() else np.inf
    n_samples, class_totals = class_counts.sum(1), class_counts.sum(0)
    class_shares = class_counts / np.maximum(n_samples, 1.0)[:, None]
    may_enter = excess < upper_mean
    for c in range(class_counts.shape[1]):
        holder_ids = ranking[may_enter[ranking] & (class_shares[ranking, c] >= MIN_CLASS_SHARE / class_counts.shape[1])]
        for joining_id in holder_ids[~in_pool[holder_ids]].tolist():
            if _is_covered(in_pool, class_counts[:, c], n_samples, class_totals[c], class_cover):
                break
            in_pool[joining_id] = True
    return in_pool


def _is_covered(
    in_pool: Bool[np.ndarray, "_n"], class_counts: Values, n_samples: Values, class_total: float, class_cover: float
) -> bool:
    """Return whether the pool holds at least `class_cover` times its share of a class.

    Args:
        in_pool: whether each client is in the pool, [n].
        class_counts: samples of the class at each client, [n].
        n_samples: samples of all classes at each client, [n].
        class_total: samples of the class at all clients.
        class_cover: least ratio of the pool's share of the class to its share of all samples.
    """
    pool_share = float(n_samples[in_pool].sum()) / float(n_samples.sum())
    return float(class_counts[in_pool].sum()) >= class_cover * class_total * pool_share


def covers_all_classes(in_pool: Bool[np.ndarray, "_n"], counts: Float64[np.ndarray, "_n _c"], cover: float) -> bool:
    """Return whether the pool holds at least `cover` times its share of every class.

    Args:
        in_pool: whether each client is in the pool, [n].
        counts: samples by client and class, [n, C].
        cover: least ratio of the pool's share of a class to its share of all samples.
    """
    n_samples = counts.sum(1)
    return all(_is_covered(in_pool, column, n_samples, float(column.sum()), cover) for column in counts.T)
