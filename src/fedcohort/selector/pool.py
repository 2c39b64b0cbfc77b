"""Uniform draws from a pool: the share of the available clients with the highest scores.

    pool:  the max(m, ceil(share A)) clients with the highest scores among the A available ones
    S:  m clients of the pool, all subsets equally likely

share=0 always takes the m best clients; share=1 is selector=random. Ties at the pool's edge are broken at random.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Stateless, StatelessSelector, draw, replace_nan_scores, top
from fedcohort.types import Ids, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class TopPoolSelector(StatelessSelector):
    """A selector that draws cohorts uniformly from the available clients with the highest scores (`score_clients`).

    Attributes:
        share: size of the pool as a share of the available clients, in [0, 1].
    """

    share: float

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")

    @abstractmethod
    def score_clients(self, ctx: RoundContext) -> Values:
        """Return a score for each client in round `ctx`, float64 [n_clients]; higher is better."""

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return draw_from_pool(self.score_clients(ctx), self.share, ctx), state


def draw_from_pool(scores: Values, pool_share: float, ctx: RoundContext) -> Selection:
    """Draw the cohort uniformly from the pool, the available clients with the highest scores.

    Args:
        scores: score of each client, float64 [n_clients]; NaN ranks last.
        pool_share: size of the pool as a share of the available clients, in [0, 1]; at least the cohort.
        ctx: the round's context, with available clients, cohort and random generator.
    """
    pool_size = max(ctx.cohort, math.ceil(pool_share * len(ctx.available) - 1e-9))  # .3 * 10 exceeds 3 by rounding
    pool_ids = top(scores, ctx.available, pool_size, ctx.rng)
    clients = draw(np.ones(ctx.n_clients), pool_ids, ctx.cohort, ctx.rng)
    return Selection(clients, scores, probability=pool_probabilities(scores, ctx.available, pool_size, ctx.cohort))


def pool_probabilities(scores: Values, available_ids: Ids, pool_size: int, cohort: int) -> Values:
    """Return each client's probability of selection by a uniform draw from the pool, [n_clients].

    Args:
        scores: score of each client, [n_clients]; NaN ranks last.
        available_ids: sorted ids of the available clients.
        pool_size: number of available clients in the pool, those with the highest scores; clients tied at the last
            place share it equally.
        cohort: number of clients to draw.
    """
    client_probabilities = np.zeros(len(scores))
    if not len(available_ids):
        return client_probabilities
    pool_size = min(pool_size, len(available_ids))
    available_scores = replace_nan_scores(scores[available_ids])
    cutoff_score = np.sort(available_scores)[::-1][pool_size - 1]
    is_above_cutoff, has_cutoff_score = available_scores > cutoff_score, available_scores == cutoff_score
    client_probabilities[available_ids] = (
        is_above_cutoff + has_cutoff_score * (pool_size - is_above_cutoff.sum()) / has_cutoff_score.sum()
    ) * min(1.0, cohort / pool_size)
    return client_probabilities
