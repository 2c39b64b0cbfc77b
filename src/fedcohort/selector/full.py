"""Full participation, a yardstick: everybody who is available trains in every round, whatever the cohort.

    S_t = all available clients

Not a selection, and it costs what everybody costs: bytes, FLOPs, and the time of the slowest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.base import Stateless
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class Full:
    """No options."""

    needs: ClassVar[frozenset[str]] = frozenset()
    advises: ClassVar[bool] = False
    uncapped: ClassVar[bool] = True

    def init(self, population: Population) -> Stateless:
        return Stateless()

    def plan(self, state: Stateless, ctx: RoundContext) -> Sequence[Probe]:
        return ()

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return Selection(ctx.available, uncapped=True), state

    def observe(self, state: Stateless, outcome: RoundOutcome) -> tuple[None, Stateless]:
        return None, state

    def trace(self, state: Stateless) -> Mapping[str, tuple[float, float]]:
        return {}
