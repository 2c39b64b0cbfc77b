"""Stratified sampling: the spread of strata, and the allocation of m draws to strata."""

import numpy as np
from jaxtyping import Float64, Int64

StratumSizes = Int64[np.ndarray, "h"]
PerStratum = Float64[np.ndarray, "h"]


def spread_of_strata(X: Float64[np.ndarray, "n d"], label: Int64[np.ndarray, "n"], count: int) -> PerStratum:
    """Return S_h = sqrt(sum_{k in h} ||X_k - mean||^2 / (N_h - 1)) of each stratum, [count]; 0 for a single member."""
    out = np.zeros(count)
    for h in range(count):
        members = X[label == h]
        if len(members) > 1:
            out[h] = np.sqrt(((members - members.mean(0)) ** 2).sum() / (len(members) - 1))
    return out


def neyman_targets(sizes: StratumSizes, S: PerStratum, m: int) -> PerStratum:
    """Return Neyman's allocation m N_h S_h / sum N_j S_j; m N_h / sum N_j if all S are 0."""
    weight = sizes * S if (sizes * S).sum() > 0 else sizes.astype(np.float64)
    return m * weight / max(float(weight.sum()), 1e-300)


def round_to_capacity(target: PerStratum, capacity: StratumSizes, m: int) -> StratumSizes:
    """Round the strata's target numbers of draws to integers of at most `capacity`, [h].

    They sum to m or, if that is less, to the sum of `capacity`.

    Each stratum with capacity gets one draw, or those with the largest targets if m is too small for that. Each
    further draw goes to the stratum that is farthest below its target, the first one in case of ties.
    """
    draws = np.zeros(len(target), np.int64)
    first = np.flatnonzero(capacity > 0)
    draws[first[np.argsort(-target[first], kind="stable")][:m]] = 1
    while draws.sum() < min(m, capacity.sum()):
        draws[int(np.where(draws < capacity, target - draws, -np.inf).argmax())] += 1
    return draws


def equal_allocation(sizes: StratumSizes, capacity: StratumSizes, m: int) -> StratumSizes:
    """Divide m draws equally among strata, [h], with at most `capacity` draws each.

    The draws sum to m or, if that is less, to the sum of `capacity`.

    The remainder of the division goes to the largest strata. Draws beyond a stratum's capacity go to the others.
    """
    draws = np.zeros(len(sizes), np.int64)
    while (remaining := int(min(m, capacity.sum()) - draws.sum())) > 0:
        free_strata = np.flatnonzero(draws < capacity)
        per_stratum, remainder = divmod(remaining, len(free_strata))
        share = np.full(len(free_strata), per_stratum)
        share[np.argsort(-sizes[free_strata], kind="stable")[:remainder]] += 1
        draws[free_strata] = np.minimum(draws[free_strata] + share, capacity[free_strata])
    return draws
