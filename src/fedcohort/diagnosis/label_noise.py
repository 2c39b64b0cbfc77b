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
MAX_GAP = 1.15  # a larger difference of rates is impossible: the model does not tell yet
MIN_CLASS_SHARE = 2.0  # a client holds a class if its share there is this multiple of 1 / C


@dataclass(frozen=True)
class NoiseEstimate:
    """Label noise as one probe shows it.

    Attributes:
        fit: the fit with numbers of samples per class.
        is_noisier: whether each client is above the cut, bool [n].
        gap: difference between the groups' mean rates; NaN where D is not positive.
    """

    fit: ExcessLoss
    is_noisier: Bool[np.ndarray, "_n"]
    gap: float

    @property
    def is_valid(self) -> bool:
        """Whether the model tells right labels from wrong ones, so that the gap means something."""
        return self.fit.scale >= MIN_SCALE and self.gap <= MAX_GAP


def estimate_noise(losses: ClassLosses) -> NoiseEstimate:
    """Return what the reports of at least one client with samples show about label noise."""
    fit, secure_fit = fit_by_class(losses), fit_by_sums(losses)
    is_noisier, difference = split_in_two(fit.excess)
    _, secure_difference = split_in_two(secure_fit.excess)
    is_known = fit.scale > 0 and secure_fit.scale > 0
    gap = min(difference / fit.scale, secure_difference / secure_fit.scale) if is_known else float("nan")
    return NoiseEstimate(fit, is_noisier, gap)


def split_in_two(values: Values) -> tuple[Bool[np.ndarray, "_n"], float]:
    """Return which values [n] are in the upper one of two groups, and the difference of the groups' means.

    Groups may hold one value. All equal values are one group, the lower one.
    """
    ordered = np.sort(values)
    n, n_low = len(values), np.arange(1, len(values))
    if n < 2 or ordered[0] == ordered[-1]:
        return np.zeros(n, dtype=bool), 0.0
    low_sums = np.cumsum(ordered)[:-1]
    differences = (ordered.sum() - low_sums) / (n - n_low) - low_sums / n_low
    cut = int(np.argmax(n_low * (n - n_low) * differences**2))
    return values > ordered[cut], float(differences[cut])


def choose_pool(
    estimate: NoiseEstimate, counts: Float64[np.ndarray, "_n _c"], min_share: float, cover: float
) -> Bool[np.ndarray, "_n"]:
    """Return which clients form the pool, bool [n].

    Args:
        estimate: label noise of these clients.
        counts: their numbers of samples by class, [n, C].
        min_share: the least share of clients; if fewer are below the cut, those with the least excess.
        cover: for each class, the least ratio of the pool's share of its samples to the pool's share of all samples.
            Clients above the cut that hold much of a class join, the ones with the least excess first.
    """
    excess, is_noisier = estimate.fit.excess, estimate.is_noisier
    order, min_size = np.argsort(excess, kind="stable"), math.ceil(min_share * len(excess))
    in_pool = ~is_noisier
    if in_pool.sum() < min_size:
        in_pool = np.zeros(len(excess), dtype=bool)
        in_pool[order[:min_size]] = True
    upper_mean = float(excess[~in_pool].mean()) if not in_pool.all() else np.inf
    samples, class_totals = counts.sum(1), counts.sum(0)
    class_shares = counts / np.maximum(samples, 1.0)[:, None]
    may_join = excess < upper_mean
    for c in range(counts.shape[1]):
        holders = order[may_join[order] & (class_shares[order, c] >= MIN_CLASS_SHARE / counts.shape[1])]
        for client in holders[~in_pool[holders]].tolist():
            if _is_covered(in_pool, counts[:, c], samples, class_totals[c], cover):
                break
            in_pool[client] = True
    return in_pool


def _is_covered(
    in_pool: Bool[np.ndarray, "_n"], class_counts: Values, samples: Values, class_total: float, cover: float
) -> bool:
    """Return whether the pool has its share of a class: `class_counts` [n] of `class_total` samples."""
    pool_share = float(samples[in_pool].sum()) / float(samples.sum())
    return float(class_counts[in_pool].sum()) >= cover * class_total * pool_share


def covers_all_classes(in_pool: Bool[np.ndarray, "_n"], counts: Float64[np.ndarray, "_n _c"], cover: float) -> bool:
    """Return whether the pool has at least `cover` of its share of every class; counts: samples by class, [n, C]."""
    samples = counts.sum(1)
    return all(
        _is_covered(in_pool, counts[:, c], samples, float(counts[:, c].sum()), cover) for c in range(counts.shape[1])
    )
