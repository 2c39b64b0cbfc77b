"""The round closes when a share of the selected have answered: "SPC" in FedBalancer (Shin et al. 2022).

    k = max(1, floor(share m)),   announce = inf,   close = the k-th smallest of T_1, ..., T_m

Who is later is dropped: nobody is told a deadline that part of the work could be done for.

Departures from the paper:
- SmartPC itself (Li et al., RTSS 2019) predicts a deadline for a share, before the round, and slows processors down to
  meet it with less energy. This is FedBalancer's reading of it, which gives share = 0.8; hence the name.
- Those who finish at the very moment of the k-th arrive with it: a closing time can't tell them apart. Drawn times
  don't meet; with device=instant everybody arrives.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.deadline.base import Deadline, PaceContext
from fedcohort.types import Population, Values


@dataclass(frozen=True)
class SmartpcQuorum(Deadline[None]):
    """The deadline, with its options.

    Attributes:
        share: of the selected, who are waited for.
    """

    share: float
    partial_work: bool = field(default=False, init=False)

    announces: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "(0, 1]")

    @property
    def bounded(self) -> bool:
        """Whether somebody may be late: at a share of 1 everybody is waited for."""
        return self.share < 1

    def most(self, cohort: int) -> int:
        """Return k, max(1, floor(share m))."""
        return max(1, math.floor(self.share * cohort + 1e-9))  # .29 x 100 is 28.999999999999996

    def init(self, population: Population) -> None:
        """No state."""

    def announce(self, state: None, ctx: PaceContext) -> float:
        """Return infinity: clients are told no deadline."""
        return math.inf

    def close(self, state: None, finish: Values, announced: float) -> float:
        """The k-th answer, in seconds; 0 where nobody was selected."""
        if not len(finish):
            return 0.0
        k = self.most(len(finish))
        return float(np.partition(finish, k - 1)[k - 1])
