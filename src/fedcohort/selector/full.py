"""Full participation, a yardstick: everybody who is available trains in every round, whatever the cohort.

    S_t = all available clients

Not a selection, and it costs what everybody costs: bytes, FLOPs, and the time of the slowest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.base import Selector, Stateless
from fedcohort.types import Population, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class Full(Selector[Stateless]):
    """No options."""

    uncapped: ClassVar[bool] = True

    def init(self, population: Population) -> Stateless:
        return Stateless()

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return Selection(ctx.available, uncapped=True), state
