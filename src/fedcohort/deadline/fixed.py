"""A fixed deadline of k T, the same rule in every round ("1T", "2T" in FedBalancer).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601, Sec. 5.1.

    T:  mean over all clients of the expected seconds of the full job
    announce = close:  k T

Departures from the paper:
- k T is not truncated to whole seconds, which the released code does and which fails for other units of time.
- T is for training on all samples, whatever the sample selection takes or evaluates before. The code includes the
  sample selection in T.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.deadline.base import Deadline, PaceContext
from fedcohort.types import Population


@dataclass(frozen=True)
class Fixed(Deadline[None]):
    """A deadline of k mean expected durations of all clients' jobs, the same in every round.

    Attributes:
        k: the deadline in mean completion times.
        partial_work: whether late clients do as many units as fit.
    """

    k: float
    partial_work: bool

    def __post_init__(self) -> None:
        ranges.number("k", self.k, "(0, inf)")
        ranges.flag("partial_work", self.partial_work)

    def suggest(self, units: int) -> str:
        """Return the options that the user should change if no client is in time: deadline.k, or partial work."""
        return ", or ".join(("raise deadline.k", *filter(None, (super().suggest(units),))))

    def init(self, population: Population) -> None:
        """Return None, as a fixed deadline has no state."""

    def announce(self, state: None, ctx: PaceContext) -> float:
        """Return k T in seconds: travel, inference and all units on all samples, averaged over the population."""
        return self.k * float(ctx.expected_all.finish_s(ctx.units).mean())
