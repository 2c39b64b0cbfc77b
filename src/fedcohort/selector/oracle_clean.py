"""The clean oracle, a yardstick: it knows with what chance each client's labels were flipped.

    S = m of the max(m, ceil(share A)) cleanest of the A available clients, drawn by chance      (`pool.py`)

Not a paper's method, as nobody could know it. share=0 always trains the m cleanest, who may lack whole classes.
Without label noise it is selector=random. A client that fails three times in a row rests for a while (`backoff.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedcohort import ranges
from fedcohort.selector import backoff, pool
from fedcohort.selector.backoff import Backoff
from fedcohort.selector.base import Selector
from fedcohort.types import Population, ProbeResult, RoundContext, RoundOutcome, Selection


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
        return pool.choose(1.0 - ctx.signals["noise_rate"], self.share, ctx), state

    def observe(self, state: Backoff, outcome: RoundOutcome) -> tuple[None, Backoff]:
        return None, backoff.after(state, outcome)
