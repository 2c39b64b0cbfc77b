"""Over-commitment: more clients are selected than requested, and the round closes with the requested number.

    selected:  ceil(factor m) clients
    announce:  inf
    close:  the m-th smallest of T_1, ..., T_selected

Oort (Lai et al., OSDI 2021, arXiv 2010.06081) was evaluated with factor = 1.3, the default of FedScale, which rounds
down: 6 for m = 5, here 7. Late clients are dropped with all of their work. Where fewer than m clients are available,
all are selected and waited for; between m and `selected`, the first m are.

Departures from the paper:
- Clients that finish at the same time as the m-th arrive too, as a closing time cannot separate them.
- A selector that selects more than the cohort (FLASH's first round, selector=full) has 1 / factor of its clients waited
  for.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from fedcohort import ranges
from fedcohort.deadline.base import Deadline, time_of_arrival
from fedcohort.types import Population, Values

ROUNDING_TOLERANCE = 1e-9  # 1.1 x 30 is 33.00000000000001 in floating point


@dataclass(frozen=True)
class OverCommit(Deadline[int]):
    """Over-commitment, a rule that ends rounds; its state is m, the requested number of clients.

    Attributes:
        factor: number of selected clients divided by m.
        partial_work: always False: late clients are dropped.
    """

    factor: float
    partial_work: bool = field(default=False, init=False)

    announces: ClassVar[bool] = False
    smaller_cohort_advice: ClassVar[str] = "lower deadline.factor"

    def __post_init__(self) -> None:
        ranges.number("factor", self.factor, "[1, 1e9]")

    @property
    def bounded(self) -> bool:
        """Return whether a client may be late: with a factor of 1 all are waited for."""
        return self.factor > 1

    def cohort_size(self, cohort: int) -> int:
        """Return the number of clients to select: factor x `cohort`, the requested number, rounded up."""
        return math.ceil(self.factor * cohort - ROUNDING_TOLERANCE)

    def max_arrivals(self, cohort: int) -> int:
        """Return the number of arrivals that end the round: `cohort`, without the extra clients."""
        return cohort

    def init(self, population: Population) -> int:
        """Return the state, `population.cohort`, the number of clients that the run requests in each round."""
        return population.cohort

    def close(self, state: int, finish_s: Values, announced_s: float) -> float:
        """Return the second at which the m-th update arrives; the last one for fewer clients, 0 for none.

        Of a cohort larger than factor x m, a share of 1 / factor is waited for.

        Args:
            state: the requested number of clients, m.
            finish_s: seconds at which each selected client's update would arrive, [selected].
            announced_s: not used, as no deadline is announced.
        """
        return time_of_arrival(finish_s, max(state, math.floor(len(finish_s) / self.factor + ROUNDING_TOLERANCE)))
