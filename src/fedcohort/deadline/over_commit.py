"""More clients are asked than are wanted, and the round closes when as many as are wanted have answered.

    asked = ceil(factor m),   announce = inf,   close = the m-th smallest of T_1, ..., T_asked

Oort (Lai et al., OSDI 2021) was evaluated so, with factor = 1.3, which is FedScale's default (and rounded down there: 6
for m = 5, here 7). Who is later is dropped, with all of its work. Where fewer than m are there, all of them are asked
and waited for; where it is between m and `asked`, the first m are.

Departures from the paper:
- Those who finish at the very moment of the m-th arrive with it: a closing time can't tell them apart.
- A selector that asks more than the cohort (FLASH's first round, selector=full) has 1 / factor of them waited for.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.deadline.base import Deadline, PaceContext
from fedcohort.types import Population, Values

ROUNDING = 1e-9  # 1.1 x 30 is 33.00000000000001, and 13 / 1.3 might have been 9.999999999999998


@dataclass(frozen=True)
class OverCommit(Deadline[int]):
    """The deadline, with its options. Its state is m, the clients wanted.

    Attributes:
        factor: clients asked, in clients wanted.
    """

    factor: float
    partial_work: bool = field(default=False, init=False)

    announces: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("factor", self.factor, "[1, inf)")

    @property
    def bounded(self) -> bool:
        """Whether somebody may be late: at a factor of 1 everybody is waited for."""
        return self.factor > 1

    def ask(self, cohort: int) -> int:
        """Return factor x cohort, rounded up."""
        return math.ceil(self.factor * cohort - ROUNDING)

    def most(self, cohort: int) -> int:
        """Return those wanted."""
        return cohort

    def init(self, population: Population) -> int:
        """The clients wanted."""
        return population.cohort

    def announce(self, state: int, ctx: PaceContext) -> float:
        """Return infinity: clients are told no deadline."""
        return math.inf

    def close(self, state: int, finish: Values, announced: float) -> float:
        """The m-th answer, in seconds; the last where fewer were selected, 0 where nobody was."""
        if not len(finish):
            return 0.0
        m = min(len(finish), max(state, math.floor(len(finish) / self.factor + ROUNDING)))
        return float(np.partition(finish, m - 1)[m - 1])
