"""What the yardsticks that know the future share: everybody trains from w_t, in secret, before a cohort is chosen.

It trains on what the sample selection takes. Failures are not foreseen; clients that failed three times in a row
are withheld for a while (`round/backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Selector, Stateless, answers, top
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class Foresight(Selector[Stateless]):
    """The selector, with its options.

    Attributes:
        limit: the largest population for which every client is trained in every round.
        direction: where the server's loss goes with each pick, "down" or "up", as in `signal/greedy_gain.py`.
    """

    limit: int

    direction: ClassVar[str]
    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"greedy_gain"})

    def __post_init__(self) -> None:
        ranges.integer("limit", self.limit, "[1, inf)")

    def init(self, population: Population) -> Stateless:
        """Raises `OptionError` where the population exceeds the limit: all of it trains in every round."""
        clients = population.n_clients
        if clients > self.limit:
            allowed = f"an integer of at least {clients}, the clients there are: all of them train every round"
            raise ranges.refuse("limit", allowed, self.limit)
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        """Ask nothing where everybody who is available is needed anyway."""
        if len(ctx.available) <= ctx.cohort:
            return ()
        return (Probe("greedy_gain", ctx.available, {"cohort": ctx.cohort, "direction": self.direction}),)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        """Choose those who were picked first."""
        scores = answers(probes, "greedy_gain").dense(ctx.n_clients)
        scores[ctx.available] = np.where(np.isfinite(scores[ctx.available]), scores[ctx.available], -np.inf)
        return Selection(top(scores, ctx.available, ctx.cohort, ctx.rng), scores), state
