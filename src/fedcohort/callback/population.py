"""What the clients look like before anything is trained: the facts of the start-up table and the partition's figure."""

import numpy as np
from jaxtyping import Bool, Float64, Int64

CHANCE = 4.0  # standard deviations above what dealing at random would give


def shares(class_counts: np.ndarray) -> Float64[np.ndarray, "clients classes"]:
    """Each client's share of each class; zeros for a client without samples."""
    total = class_counts.sum(axis=1, keepdims=True)
    found: np.ndarray = class_counts / np.maximum(total, 1)
    return found


def classes_held(class_counts: np.ndarray) -> Int64[np.ndarray, "clients"]:
    """The number of classes of which a client has a sample."""
    held: np.ndarray = (class_counts > 0).sum(axis=1).astype(np.int64)
    return held


def skewed(class_counts: np.ndarray) -> Bool[np.ndarray, "clients"]:
    """Clients whose classes depart from the federation's by more than chance.

    Pearson's chi-square of a client's counts against the federation's shares has mean d and variance 2d (d degrees of
    freedom) when samples are dealt at random, whatever the client's size: skewed is d + 4 sqrt(2 d) and above.
    """
    counts = class_counts[:, class_counts.sum(axis=0) > 0].astype(np.float64)
    freedom = counts.shape[1] - 1
    if freedom < 1:
        return np.zeros(len(class_counts), dtype=bool)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    distance = ((counts - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=1)
    above: np.ndarray = distance > freedom + CHANCE * np.sqrt(2 * freedom)
    return above


def low_middle_high(values: np.ndarray) -> tuple[float, float, float]:
    """Minimum, median, maximum; NaN for an empty array."""
    if not len(values):
        return (float("nan"),) * 3
    return float(np.min(values)), float(np.median(values)), float(np.max(values))
