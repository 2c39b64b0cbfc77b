"""Stratified sampling: the spread of strata, and the allocation of m draws to strata."""

import numpy as np
from jaxtyping import Float64, Int64

from fedcohort.types import Ids, Values

StratumSizes = Int64[np.ndarray, "h"]
StratumValues = Float64[np.ndarray, "h"]


def deviations_of_strata(X: Float64[np.ndarray, "n d"], stratum_of_row: Ids, n_strata: int) -> StratumValues:
    """Return the standard deviation of the rows of X [n, d] in each stratum, [n_strata]; 0 for a single row.

    It is the root of the mean squared distance to the stratum's mean row, with the number of rows less one as divisor.
    `stratum_of_row` is the stratum of each row, from 0, [n].
    """
    standard_deviations = np.zeros(n_strata)
    for h in range(n_strata):
        member_rows = X[stratum_of_row == h]
        if len(member_rows) > 1:
            standard_deviations[h] = np.sqrt(((member_rows - member_rows.mean(0)) ** 2).sum() / (len(member_rows) - 1))
    return standard_deviations


def neyman_allocation(stratum_sizes: StratumSizes, standard_deviations: StratumValues, n_draws: int) -> StratumValues:
    """Return Neyman's allocation of draws to h strata, [h], in proportion to size times deviation.

    It is proportional to size if all deviations are 0. The targets are not integers.

    Args:
        stratum_sizes: number of members of each stratum, [h].
        standard_deviations: standard deviation in each stratum, [h].
        n_draws: number of draws to allocate.
    """
    stratum_masses = stratum_sizes * (standard_deviations if (stratum_sizes * standard_deviations).sum() > 0 else 1.0)
    return n_draws * stratum_masses / max(float(stratum_masses.sum()), 1e-300)


def round_draws_to_capacity(target_draws: StratumValues, capacities: StratumSizes, n_draws: int) -> StratumSizes:
    """Return integers near `target_draws` [h], the target number of draws of each stratum, of at most `capacities` [h].

    The integers sum to `n_draws` or, if that is less, to the sum of `capacities`. Each stratum with capacity gets one
    draw, or the strata with the largest targets if there are too few draws. Each further draw goes to the stratum that
    is farthest below its target, the first one in case of ties.
    """
    stratum_draws = np.zeros(len(target_draws), np.int64)
    strata_with_capacity = np.flatnonzero(capacities > 0)
    stratum_draws[strata_with_capacity[np.argsort(-target_draws[strata_with_capacity], kind="stable")][:n_draws]] = 1
    while stratum_draws.sum() < min(n_draws, capacities.sum()):
        stratum_draws[int(np.where(stratum_draws < capacities, target_draws - stratum_draws, -np.inf).argmax())] += 1
    return stratum_draws


def equal_stratum_allocation(stratum_sizes: StratumSizes, capacities: StratumSizes, n_draws: int) -> StratumSizes:
    """Return the number of draws of each of h strata, [h]: `n_draws` divided equally, at most `capacities` [h] each.

    The result sums to `n_draws` or, if that is less, to the sum of `capacities`. The remainder of the division goes to
    the largest strata by `stratum_sizes` [h]. Draws beyond a stratum's capacity go to the other strata.
    """
    stratum_draws = np.zeros(len(stratum_sizes), np.int64)
    while (n_remaining_draws := int(min(n_draws, capacities.sum()) - stratum_draws.sum())) > 0:
        strata_with_capacity = np.flatnonzero(stratum_draws < capacities)
        draws_per_stratum, n_leftover_draws = divmod(n_remaining_draws, len(strata_with_capacity))
        stratum_draws[strata_with_capacity] += draws_per_stratum
        stratum_draws[
            strata_with_capacity[np.argsort(-stratum_sizes[strata_with_capacity], kind="stable")[:n_leftover_draws]]
        ] += 1
        stratum_draws = np.minimum(stratum_draws, capacities)
    return stratum_draws


def stratum_weights(stratum_of_client: Ids, arrived_ids: Ids) -> Values:
    """Return each arrived client's weight, its stratum's share of all clients divided by the stratum's arrivals.

    `stratum_of_client` is the stratum of every client, [n_clients], `arrived_ids` the ids of those that arrived; the
    weights are [len(arrived_ids)].
    """
    stratum_of_arrival = stratum_of_client[arrived_ids] + 1
    stratum_sizes, arrivals_by_stratum = np.bincount(stratum_of_client + 1), np.bincount(stratum_of_arrival)
    return np.asarray(
        stratum_sizes[stratum_of_arrival] / len(stratum_of_client) / arrivals_by_stratum[stratum_of_arrival]
    )
