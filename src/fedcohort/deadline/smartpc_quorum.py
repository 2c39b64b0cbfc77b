"""SmartPC quorum: the round closes when a share of the clients' updates has arrived ("SPC" in FedBalancer).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601.

    k:  max(1, floor(share m))
    announce:  inf
    close:  the k-th smallest of T_1, ..., T_m

Late clients are dropped: without an announced deadline they could not do a part of the work.

Departures from the paper:
- SmartPC (Li et al., "SmartPC: Hierarchical Pace Control in Real-Time Federated Learning System", RTSS 2019) predicts a
  deadline for a share of the clients before the round, and slows processors down to save energy. This is FedBalancer's
  form of it, with share = 0.8.
- Clients that finish at the same time as the k-th arrive too, as a closing time cannot separate them. With
  device=instant all clients arrive.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from fedcohort import ranges
from fedcohort.deadline.base import Deadline, time_of_arrival
from fedcohort.types import Population, Values


@dataclass(frozen=True)
class SmartpcQuorum(Deadline[None]):
    """The SmartPC quorum: the round closes when the updates of a share of the selected clients have arrived.

    Attributes:
        share: share of the selected clients that is waited for.
        partial_work: always False: late clients are dropped.
    """

    share: float
    partial_work: bool = field(default=False, init=False)

    announces: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "(0, 1]")

    @property
    def bounded(self) -> bool:
        """Return whether a client may be late: with a share of 1 all are waited for."""
        return self.share < 1

    def max_arrivals(self, cohort: int) -> int:
        """Return the number of updates that close the round: max(1, floor(share x `cohort`))."""
        return max(1, math.floor(self.share * cohort + 1e-9))  # .29 x 100 is 28.999999999999996

    def init(self, population: Population) -> None:
        """Return None, as a quorum has no state; `population` is not read."""

    def close(self, state: None, finish_s: Values, announced_s: float) -> float:
        """Return the second after the broadcast at which the last update of the quorum arrives; 0 without clients.

        Args:
            state: None.
            finish_s: seconds at which each selected client's update would arrive, [m].
            announced_s: not used, as no deadline is announced.
        """
        return time_of_arrival(finish_s, self.max_arrivals(len(finish_s)))
