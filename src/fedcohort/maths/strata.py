"""Stratified sampling: how many of m draws each stratum gets, and how unlike its members are."""

import numpy as np
from jaxtyping import Float64, Int64

Sizes = Int64[np.ndarray, "h"]
Reals = Float64[np.ndarray, "h"]


def spread(X: Float64[np.ndarray, "n d"], label: Int64[np.ndarray, "n"], count: int) -> Reals:
    """S_h = sqrt(sum_{k in h} ||X_k - mean||^2 / (N_h - 1)), 0 for a single member."""
    out = np.zeros(count)
    for h in range(count):
        members = X[label == h]
        if len(members) > 1:
            out[h] = np.sqrt(((members - members.mean(0)) ** 2).sum() / (len(members) - 1))
    return out


def targets(sizes: Sizes, S: Reals, m: int) -> Reals:
    """Neyman's m N_h S_h / sum N_j S_j; m N_h / sum N_j where all S are 0."""
    weight = sizes * S if (sizes * S).sum() > 0 else sizes.astype(np.float64)
    return m * weight / max(float(weight.sum()), 1e-300)


def neyman(target: Reals, room: Sizes, m: int) -> Sizes:
    """Whole numbers near the targets, at most `room`, that sum to m, or to all the room there is.

    Everyone with room starts at 1, or those of the largest targets where m is too small for that; then one at a time
    goes to who lacks most. Equals go to the first.
    """
    draws = np.zeros(len(target), np.int64)
    first = np.flatnonzero(room > 0)
    draws[first[np.argsort(-target[first], kind="stable")][:m]] = 1
    while draws.sum() < min(m, room.sum()):
        draws[int(np.where(draws < room, target - draws, -np.inf).argmax())] += 1
    return draws


def equal(sizes: Sizes, room: Sizes, m: int) -> Sizes:
    """m / H each, at most `room`; the remainder to the largest, and again what has no room."""
    draws = np.zeros(len(sizes), np.int64)
    while (left := int(min(m, room.sum()) - draws.sum())) > 0:
        free = np.flatnonzero(draws < room)
        each, rest = divmod(left, len(free))
        share = np.full(len(free), each)
        share[np.argsort(-sizes[free], kind="stable")[:rest]] += 1
        draws[free] = np.minimum(draws[free] + share, room[free])
    return draws
