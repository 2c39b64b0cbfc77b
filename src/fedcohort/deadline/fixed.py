"""A deadline of k T, the same rule every round ("1T", "2T" in FedBalancer, Sec. 5.1).

    T = mean over all clients of the expected seconds of the full job,   announce = close = k T

Departures from the paper: k T is not truncated to whole seconds, which the released code does and which breaks
latencies in other units. T is of training on all samples, whatever `samples` takes of them or looks at before; the code
has those of its sample selections in the T of their rows.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.deadline.base import Deadline, PaceContext
from fedcohort.types import Population, Values


@dataclass(frozen=True)
class Fixed(Deadline[None]):
    """The deadline, with its options.

    Attributes:
        k: the deadline in mean completion times.
        partial_work: late clients do as many units as fit.
    """

    k: float
    partial_work: bool

    def __post_init__(self) -> None:
        ranges.number("k", self.k, "(0, inf)")
        ranges.flag("partial_work", self.partial_work)

    def way_out(self, units: int) -> str:
        """Return a later deadline, or less work by then."""
        return ", or ".join(("raise deadline.k", *filter(None, (super().way_out(units),))))

    def init(self, population: Population) -> None:
        """No state."""

    def announce(self, state: None, ctx: PaceContext) -> float:
        """Return k T in seconds: travel, inference and all units on all samples, averaged over the population."""
        return self.k * float(ctx.expected_all.finish(ctx.units).mean())

    def close(self, state: None, finish: Values, announced: float) -> float:
        """What was announced."""
        return announced
