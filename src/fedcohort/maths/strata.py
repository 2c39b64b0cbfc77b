"""Stratified sampling: the spread of strata, and the allocation of m draws to strata."""

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.types import Ids

StratumSizes = Int64[np.ndarray, "h"]
PerStratum = Float64[np.ndarray, "h"]


def spread_of_strata(X: Float64[np.ndarray, "n d"], stratum_of_row: Ids, n_strata: int) -> PerStratum:
    """Return S_h = sqrt(sum_{k in h} ||X_k - mean||^2 / (N_h - 1)) of each stratum, [count]; 0 for a single member."""
    standard_deviations = np.zeros(n_strata)
    for h in range(n_strata):
        member_rows = X[stratum_of_row == h]
        if len(member_rows) > 1:
            standard_deviations[h] = np.sqrt(((member_rows - member_rows.mean(0)) ** 2).sum() / (len(member_rows) - 1))
    return standard_deviations


def neyman_targets(stratum_sizes: StratumSizes, deviations: PerStratum, n_draws: int) -> PerStratum:
    """Return Neyman's allocation m N_h S_h / sum N_j S_j; m N_h / sum N_j if all S are 0."""
    weights = stratum_sizes * (deviations if (stratum_sizes * deviations).sum() > 0 else 1.0)
    return n_draws * weights / max(float(weights.sum()), 1e-300)


def round_to_capacity(target_draws: PerStratum, capacity: StratumSizes, n_draws: int) -> StratumSizes:
    """Round the strata's target numbers of draws to integers of at most `capacity`, [h].

    They sum to m or, if that is less, to the sum of `capacity`.

    Each stratum with capacity gets one draw, or those with the largest targets if m is too small for that. Each
    further draw goes to the stratum that is farthest below its target, the first one in case of ties.
    """
    draws = np.zeros(len(target_draws), np.int64)
    non_empty = np.flatnonzero(capacity > 0)
    draws[non_empty[np.argsort(-target_draws[non_empty], kind="stable")][:n_draws]] = 1
    while draws.sum() < min(n_draws, capacity.sum()):
        draws[int(np.where(draws < capacity, target_draws - draws, -np.inf).argmax())] += 1
    return draws


def equal_allocation(stratum_sizes: StratumSizes, capacity: StratumSizes, n_draws: int) -> StratumSizes:
    """Divide m draws equally among strata, [h], with at most `capacity` draws each.

    The draws sum to m or, if that is less, to the sum of `capacity`.

    The remainder of the division goes to the largest strata. Draws beyond a stratum's capacity go to the others.
    """
    draws = np.zeros(len(stratum_sizes), np.int64)
    while (n_remaining := int(min(n_draws, capacity.sum()) - draws.sum())) > 0:
        free = np.flatnonzero(draws < capacity)
        equal_share, n_left_over = divmod(n_remaining, len(free))
        draws[free] += equal_share
        draws[free[np.argsort(-stratum_sizes[free], kind="stable")[:n_left_over]]] += 1
        draws = np.minimum(draws, capacity)
    return draws
