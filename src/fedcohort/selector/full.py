"""Full participation: all available clients train in every round, whatever the cohort.

Not from a paper. It is a reference with the bytes, FLOPs and duration of all clients.

    S_t:  all available clients
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedcohort.selector.base import Stateless, StatelessSelector
from fedcohort.types import ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class Full(StatelessSelector):
    """A selector of all available clients (full participation); it has no options."""

    uncapped: ClassVar[bool] = True

    def select(
        self, state: Stateless, ctx: RoundContext, probes: Mapping[str, ProbeResult]
    ) -> tuple[Selection, Stateless]:
        return Selection(ctx.available, uncapped=True), state
