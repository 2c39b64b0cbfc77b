"""The adversary, a yardstick: it trains everybody, in secret, and picks who harms the server most in this round.

    S_{j+1} = S_j + argmax_k loss of w_t + (mean update of S_j + k, weighted by n), on server_val

Not a paper's method; the floor to selector=oracle_greedy's ceiling, with the same foresight (`signal/greedy_gain.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedcohort import ranges
from fedcohort.selector import foresight
from fedcohort.selector.base import Stateless
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class Worst:
    """limit: the largest population for which every client is trained in every round."""

    limit: int

    needs: ClassVar[frozenset[str]] = frozenset({"greedy_gain"})
    advises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.integer("limit", self.limit, "[1, inf)")

    def init(self, population: Population) -> Stateless:
        """Raises `OptionError` where the population exceeds the limit."""
        foresight.check(self.limit, population)
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        return foresight.asked("up", ctx)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return foresight.first(probes, ctx), state

    def observe(self, state: Stateless, outcome: RoundOutcome) -> tuple[None, Stateless]:
        return None, state

    def trace(self, state: Stateless) -> Mapping[str, tuple[float, float]]:
        return {}
