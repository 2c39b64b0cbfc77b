"""What the clients look like before anything is trained: the facts of the start-up table and the partition's figure."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from fedcohort.record.observer import RunInfo

CHANCE = 0.001  # of the clients that random dealing made, those that count as skewed


def heterogeneity(info: RunInfo) -> str:
    """The preset's word while it is true, else what takes its place: `dirichlet(alpha=0.5) + no label noise`."""
    if "heterogeneity" in info.choices:
        return info.choices["heterogeneity"]
    noise = "no label noise" if info.choices.get("label_noise") == "none" else _spell_word(info, "label_noise")
    found = f"{_spell_word(info, 'partition')} + {noise}"
    if info.choices.get("feature_noise", "none") == "none":
        return found
    return f"{found} + {_spell_word(info, 'feature_noise')} in inputs"


def _spell_word(info: RunInfo, group: str) -> str:
    """Spell a word with its options, `beta(a=15)`; group: or the path of a part inside another, `partition.base`."""
    node: Any = info.config
    for name in group.split("."):
        node = node.get(name, {})
    options = {name: value for name, value in node.items() if name != "_target_"}
    pairs = ", ".join(
        _spell_word(info, f"{group}.{name}") if isinstance(value, Mapping) else f"{name}={value}"
        for name, value in options.items()
    )
    return info.choices.get(group, "?") + (f"({pairs})" if pairs else "")


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

    Pearson's chi-square of a client's counts against the federation's shares, whatever the client's size.
    """
    from scipy.special import chdtri

    counts = class_counts[:, class_counts.sum(axis=0) > 0].astype(np.float64)
    freedom = counts.shape[1] - 1
    if freedom < 1:
        return np.zeros(len(class_counts), dtype=bool)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    distance = ((counts - expected) ** 2 / np.where(expected > 0, expected, 1.0)).sum(axis=1)
    above: np.ndarray = distance > chdtri(freedom, CHANCE)
    return above


def low_middle_high(values: np.ndarray) -> tuple[float, float, float]:
    """Minimum, median, maximum; NaN for an empty array."""
    if not len(values):
        return (float("nan"),) * 3
    return float(np.min(values)), float(np.median(values)), float(np.max(values))
