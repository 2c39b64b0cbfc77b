"""Relative variance of the sampled update against full participation, on demand: `eval.update_every`.

    update/relative_variance = ||G_S - G||^2 / ||G||^2

    G_S:  mean of the updates that arrived, under the weights of aggregator and selector; 0 if none arrived
    G:  mean of the updates that all clients would send in this round, under the weights of the aggregator

G trains all clients from w_t, one after the other, from the random numbers that their jobs would have. This is not
charged, takes no virtual time and changes no result. Hooks of aggregator and regulariser take no part in it. Attackers
count in G with the updates that they trained, and in G_S with those that they sent.
"""

import math
from typing import Any

import numpy as np
from torch import Tensor

from fedcohort.agg.base import Aggregator
from fedcohort.signal.access import SignalAccess
from fedcohort.types import Ids


def average_all_updates(signal_measurer: SignalAccess, agg: Aggregator[Any], n_train: Ids, round: int) -> Tensor | None:
    """Return the weighted mean of the finite updates that all clients would send in a round, float64 [P].

    It is None if no update is finite. One update is in memory at a time.

    Args:
        signal_measurer: trains clients from the global model.
        agg: the aggregator, for its weights.
        n_train: training samples of each client, [n_clients].
        round: number of the round.
    """
    update_sum, weight_sum = None, 0.0
    for client in range(len(n_train)):
        client_update = signal_measurer.train(round, client)
        update = client_update.delta.detach().double()
        if bool(update.isfinite().all()):
            update_weight = float(agg.weights(np.array([client_update.n_used]), n_train[[client]])[0])
            update_sum = update_weight * update if update_sum is None else update_sum + update_weight * update
            weight_sum += update_weight
    return None if update_sum is None or not weight_sum > 0 else update_sum / weight_sum


def compute_relative_variance(cohort_update: Tensor | None, population_update: Tensor | None) -> float:
    """Return |cohort_update - population_update|^2 / |population_update|^2, the relative variance of the mean update.

    The result is NaN if `population_update` is 0 or unknown.

    Args:
        cohort_update: mean of the updates that arrived, [P]; None for 0.
        population_update: mean of the updates that all clients would send, [P]; None if it is unknown.
    """
    squared_update_norm = 0.0 if population_update is None else float(population_update @ population_update)
    if population_update is None or not 0 < squared_update_norm < math.inf:
        return math.nan
    update_difference = (
        population_update if cohort_update is None else cohort_update.to(population_update) - population_update
    )
    return float(update_difference @ update_difference) / squared_update_norm


def is_variance_measured(round: int, measuring_interval: int) -> bool:
    """Return whether the variance is measured in `round`: once in `measuring_interval` rounds; never if this is 0."""
    return measuring_interval > 0 and (round + 1) % measuring_interval == 0
