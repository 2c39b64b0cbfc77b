"""The clean oracle, a yardstick: it knows with what chance each client's labels were flipped.

    pool = the max(m, ceil(share A)) cleanest of the A available clients;   S = m of them, all sets equally likely

Not a paper's method, as nobody could know it. share=0 always trains the m cleanest, who may lack whole classes;
share=1 is selector=random. Equally clean clients are in the pool by chance, so that without label noise it is
selector=random too. A client that fails three times in a row rests for a while (`backoff.py`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector import backoff
from fedcohort.selector.backoff import Backoff
from fedcohort.selector.base import Selector, draw, top
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values


@dataclass(frozen=True)
class OracleClean(Selector[Backoff]):
    """The yardstick, with its option. A score is 1 - noise_rate.

    Attributes:
        share: of the available clients that are drawn from, the cleanest.
    """

    share: float

    needs: ClassVar[frozenset[str]] = frozenset({"noise_rate"})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")

    def init(self, population: Population) -> Backoff:
        return backoff.NOBODY

    def select(self, state: Backoff, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, Backoff]:
        ctx = backoff.ready(state, ctx)
        scores: Values = 1.0 - ctx.signals["noise_rate"]
        size = max(ctx.cohort, math.ceil(self.share * len(ctx.available) - 1e-9))  # .3 * 10 is a little above 3
        pool = top(scores, ctx.available, size, ctx.rng)
        clients = draw(np.ones(ctx.n_clients), pool, ctx.cohort, ctx.rng)
        return Selection(clients, scores, probability=chances(scores, ctx.available, size, ctx.cohort)), state

    def observe(self, state: Backoff, outcome: RoundOutcome) -> tuple[None, Backoff]:
        return None, backoff.after(state, outcome)


def chances(scores: Values, available: np.ndarray, size: int, cohort: int) -> Values:
    """Return every client's chance of being chosen, [n_clients]: of being in the pool, times m over its size.

    Those at the pool's edge share the places that the cleaner ones leave.
    """
    out = np.zeros(len(scores))
    if not len(available):
        return out
    size = min(size, len(available))
    value = scores[available]
    edge = np.sort(value)[::-1][size - 1]
    above, at = value > edge, value == edge
    out[available] = (above + at * (size - above.sum()) / at.sum()) * min(1.0, cohort / size)
    return out
