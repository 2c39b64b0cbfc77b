"""The greedy oracle, a yardstick: it trains everybody, in secret, and picks who helps the server most in this round.

    S_{j+1} = S_j + argmin_k loss of w_t + (mean update of S_j + k, weighted by n), on server_val

Not a paper's method, and none could be it: what it sees costs nothing here (see `signal/greedy_gain.py`), and it picks
by the validation data that a run is monitored on. It looks one round ahead and adds one client at a time: neither the
best cohort of the round, which takes trying every one, nor the best sequence of rounds. selector=worst is its opposite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedcohort import ranges
from fedcohort.selector import foresight
from fedcohort.selector.base import Stateless
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class OracleGreedy:
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
        return foresight.asked("down", ctx)

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return foresight.first(probes, ctx), state

    def observe(self, state: Stateless, outcome: RoundOutcome) -> tuple[None, Stateless]:
        return None, state

    def trace(self, state: Stateless) -> Mapping[str, tuple[float, float]]:
        return {}
