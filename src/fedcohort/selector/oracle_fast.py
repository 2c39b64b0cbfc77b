"""The fast oracle, a yardstick: it knows how long each client's job takes on average, and draws from the fastest.

    S = m of the max(m, ceil(share A)) fastest of the A available clients, drawn by chance      (`pool.py`)

It knows what persists, not what this round will draw: where no client is faster than another, it is selector=random,
and nothing is to be won by speed. share=0 always trains the m fastest, whose data may be nobody else's: it is what
speed alone can win, not what is best. A client that fails three times in a row rests for a while (`backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector import backoff, pool
from fedcohort.selector.backoff import Backoff
from fedcohort.selector.base import Selector
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class OracleFast(Selector[Backoff]):
    """The yardstick, with its option. A score is the negative of the expected seconds.

    Attributes:
        share: of the available clients that are drawn from, the fastest.
    """

    share: float

    needs: ClassVar[frozenset[str]] = frozenset({"expected_s"})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")

    def init(self, population: Population) -> Backoff:
        return backoff.NOBODY

    def select(self, state: Backoff, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, Backoff]:
        ctx = backoff.ready(state, ctx)
        return pool.choose(np.negative(ctx.signals["expected_s"]), self.share, ctx), state

    def observe(self, state: Backoff, outcome: RoundOutcome) -> tuple[None, Backoff]:
        return None, backoff.after(state, outcome)
