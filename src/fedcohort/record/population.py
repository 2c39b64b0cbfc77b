"""What the clients look like before anything is trained: the facts of the start-up table and the partition's figure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from fedcohort.data.skew import triplets
from fedcohort.record.observer import RunInfo
from fedcohort.types import Values

CHANCE = 0.001  # of the clients that random dealing made, those that count as skewed
SKEWED = 0.02  # of the clients, from which their classes are said to differ
ZERO = 1e-9  # of a variance
UNLIKE = 1.15  # largest over smallest, from which numbers differ to the eye
NOISY = 0.02  # between the cleanest and the noisiest client


@dataclass(frozen=True)
class Fact:
    """What is known of each client beside its classes.

    Attributes:
        word: in a title.
        label: of an axis.
        values: one a client, 0 where unknown.
        varies: whether clients differ in it, and not just as they do in the number of their samples.
        alike: what is said instead where they don't; "" for nothing.
    """

    word: str
    label: str
    values: Values
    varies: bool
    alike: str = ""


def list_facts(info: RunInfo) -> Sequence[Fact]:
    """List what a selector may care about, in that order: noise, speed, skew, size."""
    noise = 100 * np.nan_to_num(info.noise_rate)
    inputs = np.zeros(len(noise)) if info.feature_noise is None else np.nan_to_num(info.feature_noise)
    return [
        Fact("label noise", "wrong labels, %\n(expected)", noise, _spread(noise) >= 100 * NOISY, _say_noise(noise)),
        Fact("disturbed inputs", "noise of inputs", inputs, _spread(inputs) > 0.01 * np.max(inputs, initial=0.0)),
        _find_speed(info),
        _find_skew(info),
        _find_size(info),
    ]


def most_telling(info: RunInfo) -> Fact | None:
    """Return what clients are best sorted by: the first of `list_facts` in which they differ."""
    return next((fact for fact in list_facts(info) if fact.varies), None)


def _spread(values: Values) -> float:
    return float(np.ptp(values)) if len(values) else 0.0


def _is_unlike(values: Values) -> bool:
    known = values[values > 0]
    return len(known) > 0 and (len(known) < len(values) or known.max() > UNLIKE * known.min())


def _say_noise(noise: Values) -> str:
    return f"{noise.mean():.0f} % wrong labels each" if len(noise) and noise.max() > 0 else ""


def _find_speed(info: RunInfo) -> Fact:
    seconds = np.nan_to_num(info.expected_s, posinf=0.0)
    each = seconds / np.maximum(info.n_train, 1)
    alike = f"a full job takes {np.median(each):.2g} virtual s a sample" if seconds.any() else ""
    varies = _is_unlike(seconds) and _is_unlike(each)
    return Fact("speed", "a full job,\nvirtual s (expected)", seconds, varies, alike)


def _find_skew(info: RunInfo) -> Fact:
    imbalance = np.nan_to_num(triplets(info.class_counts[:, :, None])[:, 0])
    varies = bool(len(imbalance)) and float(find_skewed(info.class_counts).mean()) >= SKEWED
    return Fact("class imbalance", "class imbalance\n(0 even, 1 one class)", imbalance, varies)


def _find_size(info: RunInfo) -> Fact:
    sizes = info.class_counts.sum(axis=1).astype(float)
    low, high = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    alike = f"{each} samples each (training and validation)"
    return Fact("samples", "samples, training\nand validation", sizes, _is_unlike(sizes), alike)


def shares(class_counts: np.ndarray) -> Float64[np.ndarray, "clients classes"]:
    """Return each client's share of each class; zeros for a client without samples."""
    total = class_counts.sum(axis=1, keepdims=True)
    found: np.ndarray = class_counts / np.maximum(total, 1)
    return found


def count_classes(class_counts: np.ndarray) -> Int64[np.ndarray, "clients"]:
    """Count the classes of which each client has a sample."""
    counts: np.ndarray = (class_counts > 0).sum(axis=1).astype(np.int64)
    return counts


def find_skewed(class_counts: np.ndarray) -> Bool[np.ndarray, "clients"]:
    """Return which clients' classes depart from the federation's by more than chance.

    Pearson's X^2 of a client's n counts against the federation's shares p of C classes. Under chance its mean is C - 1
    and its variance v = 2 (C - 1) + (sum_c 1 / p_c - C^2 - 2 C + 2) / n (Haldane 1937), which rare classes make much
    larger than chi-square's where clients are small: it is compared with the multiple of a chi-square that has both.
    """
    from scipy.special import chdtri

    counts = class_counts[:, class_counts.sum(axis=0) > 0].astype(np.float64)
    freedom = counts.shape[1] - 1
    if freedom < 1:
        return np.zeros(len(class_counts), dtype=bool)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    distance = ((counts - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=1)
    C, n = counts.shape[1], np.maximum(counts.sum(axis=1), 1.0)
    variance = 2 * freedom + ((counts.sum() / counts.sum(axis=0)).sum() - C * C - 2 * C + 2) / n
    some = variance > ZERO  # else all samples tell the same: one of equally frequent classes
    v = np.where(some, variance, 1.0)
    above: np.ndarray = some & (distance > v / (2 * freedom) * chdtri(2 * freedom**2 / v, CHANCE))
    return above


def low_middle_high(values: np.ndarray) -> tuple[float, float, float]:
    """Minimum, median, maximum; NaN for an empty array."""
    if not len(values):
        return (float("nan"),) * 3
    return float(np.min(values)), float(np.median(values)), float(np.max(values))
