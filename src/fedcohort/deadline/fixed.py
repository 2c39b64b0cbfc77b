"""A fixed deadline of k T, the same rule in every round ("1T", "2T" in FedBalancer).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601, Sec. 5.1.

    T:  mean over all clients of the expected seconds of the full job
    announce = close:  k T

With late_updates=carry, a late client completes its work, and its update counts in the round in which it arrives. REFL
(EuroSys 2023) and SAFA (IEEE TC 2021) do so. It can't be selected before. The cohort of each round is selected in full.

Departures from the paper:
- k T is not truncated to whole seconds, which the released code does and which fails for other units of time.
- T is for training on all samples, whatever the sample selection takes or evaluates before. The code includes the
  sample selection in T.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.deadline.base import PaceContext
from fedcohort.deadline.late_updates import LateUpdates
from fedcohort.errors import OptionError
from fedcohort.types import Population


@dataclass(frozen=True, kw_only=True)
class Fixed(LateUpdates[None]):
    """A deadline of k mean expected durations of all clients' jobs, the same in every round.

    Attributes:
        k: the deadline, in mean durations of the clients' jobs.
        partial_work: whether late clients do as many units (epochs or steps) as fit.
        late_updates: "drop", or "carry" for clients that continue to work after the deadline.
    """

    k: float
    partial_work: bool
    late_updates: str

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("k", self.k, "(0, inf)")
        ranges.flag("partial_work", self.partial_work)
        ranges.choice("late_updates", self.late_updates, "drop", "carry")
        if self.partial_work and self.carries:
            raise OptionError(
                "late_updates=carry lets late clients complete all of their work, so that partial_work must be false, "
                "got true"
            )

    @property
    def carries(self) -> bool:
        return self.late_updates == "carry"

    def suggest(self, units: int) -> str:
        """Return the options that the user should change if no client is in time: deadline.k, or partial work.

        `units` is the largest number of units of local work that was requested from a client.
        """
        return ", or ".join(("raise deadline.k", *filter(None, (super().suggest(units),))))

    def init(self, population: Population) -> None:
        """Return None, as a fixed deadline has no state; `population` is not read."""

    def announce(self, state: None, ctx: PaceContext) -> float:
        """Return the deadline k T in seconds; T is the mean expected duration of all clients' whole jobs (`ctx`).

        `state` is None.
        """
        return self.k * float(ctx.expected_all.finish_s(ctx.units).mean())
