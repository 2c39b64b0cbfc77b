"""Drawing from the best: a cohort by chance out of a share of the available clients, those of the highest scores.

    pool = the max(m, ceil(share A)) best of the A available clients;   S = m of them, all sets equally likely

share=0 always takes the m best; share=1 is selector=random. Equals are in the pool by chance.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Selector, Stateless, draw, top
from fedcohort.types import Population, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class FromTheBest(Selector[Stateless]):
    """A selector that draws from the best by what it is told once.

    Attributes:
        share: of the available clients that are drawn from.
    """

    share: float

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")

    @abstractmethod
    def score(self, ctx: RoundContext) -> Values:
        """Score every client, [n_clients]; more is better."""

    def init(self, population: Population) -> Stateless:
        return Stateless()

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return choose(self.score(ctx), self.share, ctx), state


def choose(scores: Values, share: float, ctx: RoundContext) -> Selection:
    """Choose the cohort; scores: [n_clients], NaN as the lowest."""
    size = max(ctx.cohort, math.ceil(share * len(ctx.available) - 1e-9))  # .3 * 10 is a little above 3
    pool = top(scores, ctx.available, size, ctx.rng)
    clients = draw(np.ones(ctx.n_clients), pool, ctx.cohort, ctx.rng)
    return Selection(clients, scores, probability=chances(scores, ctx.available, size, ctx.cohort))


def chances(scores: Values, available: np.ndarray, size: int, cohort: int) -> Values:
    """Return every client's chance of being chosen, [n_clients]: of being in the pool, times m over its size.

    Those at the pool's edge share the places that the better ones leave.
    """
    out = np.zeros(len(scores))
    if not len(available):
        return out
    size = min(size, len(available))
    value = np.where(np.isnan(scores[available]), -np.inf, scores[available])
    edge = np.sort(value)[::-1][size - 1]
    above, at = value > edge, value == edge
    out[available] = (above + at * (size - above.sum()) / at.sum()) * min(1.0, cohort / size)
    return out
