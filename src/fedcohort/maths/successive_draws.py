"""The probability of a set that is drawn successively without replacement, and of a cohort of several such draws.

    order:  P(k_1, ..., k_m) = prod_i w_{k_i} / (sum of all weights - w_{k_1} - ... - w_{k_{i-1}})
    set:  P(S), the sum over its orders, = int_0^inf exp(-t) prod_{k in S} (1 - exp(-w_k t / R)) dt

R is the weight of the pool outside of S. Client k has the key e_k / w_k, e_k exponential, and the m smallest keys are
drawn. The integral is over R times the smallest key outside of S: the keys in S are below it. The orders are those of
Plackett and Luce, the sets those of Wallenius ("Biased Sampling", Stanford, 1963).

With t = exp(s) the integrand is analytic in |Im s| < pi/2. The relative error of the trapezoidal rule with a step h is
about exp(-2 pi^2 / (h^2 m)), and exp(-pi^2 / h) for small m. (Trefethen and Weideman, SIAM Review 56, 2014.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from fedcohort.arrays import Ids, Values
from fedcohort.draw_log import Draw, DrawLog, is_random_draw

MAX_INTEGRATION_STEP, INTEGRATION_STEP_FACTOR = 0.2, 0.7  # h is the smaller of the first, and the second / sqrt(m)
MIN_LOG_TIME = -45.0  # of s
MAX_CHUNK_SIZE = 1_000_000  # numbers of the integrand in memory
LOG_OF_ZERO = -np.inf


def log_probability_of_set(weights: Values, remaining_weight: float) -> float:
    """Return the log probability, in nats, of drawing exactly this set of clients, in any order.

    Args:
        weights: weights of the clients of the set, positive, [m].
        remaining_weight: sum of the weights in the pool outside of the set.
    """
    from scipy.special import logsumexp

    m = len(weights)
    if not m or remaining_weight <= 0:
        return 0.0
    integration_step = min(MAX_INTEGRATION_STEP, INTEGRATION_STEP_FACTOR / math.sqrt(m))
    log_times = np.arange(MIN_LOG_TIME, math.log(m + 12 * math.sqrt(m) + 50), integration_step)
    relative_weights, weight_counts = np.unique(weights / remaining_weight, return_counts=True)
    integration_time_chunks = np.array_split(
        np.exp(log_times), math.ceil(len(log_times) * len(relative_weights) / MAX_CHUNK_SIZE)
    )
    log_integrands = np.concatenate(
        [
            np.log(-np.expm1(-np.outer(integration_times, relative_weights))) @ weight_counts
            for integration_times in integration_time_chunks
        ]
    )
    return min(float(logsumexp(log_times - np.exp(log_times) + log_integrands) + math.log(integration_step)), 0.0)


@dataclass(frozen=True)
class CohortDistribution:
    """The probability distribution of a round's cohort: clients that are always in it, and draws from disjoint pools.

    Attributes:
        certain_ids: sorted ids of the clients that are in the cohort with probability 1.
        draws: logged draws that could have given more than one set of clients.
        unknown_reason: why the log does not determine the distribution; "" if it does.
    """

    certain_ids: Ids
    draws: Sequence[Draw]
    unknown_reason: str = ""

    @property
    def is_deterministic(self) -> bool:
        """Whether there is only one possible cohort."""
        return not self.draws and not self.unknown_reason

    @classmethod
    def from_draws(cls, draw_log: DrawLog, cohort: Ids) -> "CohortDistribution":
        """Return the distribution from which `cohort`, sorted ids, was drawn, by the draws in `draw_log`.

        The distribution is conditional on the queries and their answers. From the first random draw on, the pools must
        be disjoint: otherwise a later pool depends on what was drawn, and the probability is a sum over paths that the
        log does not hold.
        """
        draws = [draw for draw in draw_log.draws if not draw.is_query]
        if draw_log.has_other_randomness:
            return cls(cohort, (), "it uses random numbers outside of its logged draws")
        first_random_draw = next((i for i, draw in enumerate(draws) if is_random_draw(draw)), len(draws))
        drawn_ids = np.concatenate([np.empty(0, np.int64), *(draw.clients for draw in draws[first_random_draw:])])
        random_draws = [draw for draw in draws[first_random_draw:] if is_random_draw(draw)]
        if not np.isin(drawn_ids, cohort).all():
            return cls(cohort, (), "it draws candidates at random, of which only some train")
        if any(draw.is_dependent for draw in draws):
            return cls(cohort, (), "its later draws depend on its earlier ones")
        random_draw_ids = np.concatenate([np.empty(0, np.int64), *(draw.clients for draw in random_draws)])
        return cls(np.setdiff1d(cohort, random_draw_ids), random_draws)

    def log_probability(self, cohort: Ids) -> float:
        """Return the log probability of `cohort`, sorted ids, in nats; -inf if it cannot be drawn."""
        weights_by_draw = self._find_weights_by_draw(cohort)
        if weights_by_draw is None:
            return LOG_OF_ZERO
        return sum(_log_probability(draw, weights) for draw, weights in zip(self.draws, weights_by_draw, strict=True))

    def can_draw_cohort(self, cohort: Ids) -> bool:
        """Return whether `cohort`, sorted ids, has a positive probability."""
        return self._find_weights_by_draw(cohort) is not None

    @property
    def has_all_weights(self) -> bool:
        """Whether the log has the weights of all clients in the pools, so that each cohort's probability is known."""
        return all(len(draw.pool) == draw.pool_size for draw in self.draws)

    def _find_weights_by_draw(self, cohort: Ids) -> list[Values] | None:
        """Return the weights of the clients of `cohort` that come from each draw; None if it cannot be drawn."""
        remaining_ids = np.setdiff1d(cohort, self.certain_ids, assume_unique=True)
        if len(remaining_ids) != len(cohort) - len(self.certain_ids):
            return None
        weights_by_draw = []
        for draw in self.draws:
            pool_ids, pool_weights = np.append(draw.clients, draw.pool), np.append(draw.weights, draw.pool_weights)
            is_in_pool = np.isin(remaining_ids, pool_ids)
            id_order = np.argsort(pool_ids, kind="stable")
            drawn_weights = pool_weights[
                id_order[np.searchsorted(pool_ids, remaining_ids[is_in_pool], sorter=id_order)]
            ]
            if _count_infinite_and_zero(drawn_weights) != _count_infinite_and_zero(draw.weights):
                return None
            weights_by_draw.append(drawn_weights)
            remaining_ids = remaining_ids[~is_in_pool]
        return None if len(remaining_ids) else weights_by_draw

    def draw_cohorts(self, n: int, rng: np.random.Generator) -> Int64[np.ndarray, "n cohort"]:
        """Return `n` random cohorts of sorted ids, [n, cohort]; the log must have the weights of all clients."""
        return np.stack([self._draw_cohort(rng) for _ in range(n)])

    def _draw_cohort(self, rng: np.random.Generator) -> Ids:
        ids_by_draw = [self.certain_ids]
        for draw in self.draws:
            exponential_draws = rng.standard_exponential(len(draw.pool))
            is_zero_weight = draw.pool_weights == 0
            draw_keys = exponential_draws / np.where(is_zero_weight, 1.0, draw.pool_weights)  # 0 for infinite weights
            draw_order = np.lexsort((draw_keys, is_zero_weight)) if is_zero_weight.any() else np.argsort(draw_keys)
            ids_by_draw.append(draw.pool[draw_order[: len(draw.clients)]])
        return np.sort(np.concatenate(ids_by_draw))


def _count_infinite_and_zero(weights: Values) -> tuple[int, int, int]:
    """Return how many of `weights` are infinite, positive and finite, and zero."""
    n_infinite_weights, n_zero_weights = int(np.count_nonzero(np.isinf(weights))), int(np.count_nonzero(weights == 0))
    return n_infinite_weights, len(weights) - n_infinite_weights - n_zero_weights, n_zero_weights


def _log_probability(draw: Draw, weights: Values) -> float:
    """Return the log probability, in nats, that `draw` takes clients with these `weights`, [m].

    `weights` must hold as many infinite, positive and zero ones as those of the clients that were drawn.
    """
    if n_zero_weights := int(np.count_nonzero(weights == 0)):  # all clients of positive weight are drawn as well
        from scipy.special import gammaln

        return float(
            gammaln(n_zero_weights + 1)
            + gammaln(draw.n_zero_weights - n_zero_weights + 1)
            - gammaln(draw.n_zero_weights + 1)
        )
    positive_weights = weights[np.isfinite(weights)]
    return log_probability_of_set(positive_weights, draw.weight_sum - float(positive_weights.sum()))
