"""Buffered asynchronous rounds: the server steps after a number of arrivals, while other clients go on working.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, "Federated Learning with Buffered Asynchronous Aggregation",
AISTATS 2022, arXiv 2106.06639, Algorithm 1.

    selected:  as many clients as work less than `concurrency`
    close:  the `buffer`-th arrival of all jobs that are in flight

With agg=fedbuff this is FedBuff, and with agg=fedasync deadline.buffer=1 it is FedAsync. A step of the server is a
round of this program. If buffer = concurrency = cohort, all selected clients are waited for in every step.

Departures from the paper:
- Free places are filled when the server steps, and not at each arrival: until then they stay empty. With buffer=1 both
  are the same.
- Updates that arrive in the same second as the last one of the buffer count in the same step.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.deadline.late_updates import LateUpdates
from fedcohort.errors import OptionError
from fedcohort.types import Population, Values

TIMED_CLIENTS = Requirement(
    lambda run: run.timed,
    "{option} lets late clients go on, and none is late with {device}, where work takes no time: every step waits for "
    "all clients at work (choose device=shifted_exponential, or deadline=wait_for_all)",
)
DEFAULT_CONCURRENCY = 2  # clients at work, over the size of the buffer


@dataclass(frozen=True, kw_only=True)
class Buffered(LateUpdates[int]):
    """The rule that ends a step of the server after some arrivals; its state is their number.

    Attributes:
        buffer: arrivals that end a step; None for the cohort of the run.
        concurrency: clients that work at the same time; None for twice the buffer.
    """

    buffer: int | None
    concurrency: int | None
    partial_work: bool = field(default=False, init=False)

    announces: ClassVar[bool] = False
    carries: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({TIMED_CLIENTS})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("buffer", self.buffer, "[1, inf)", allow_null=True)
        ranges.integer("concurrency", self.concurrency, "[1, inf)", allow_null=True)
        if self.buffer is not None and self.concurrency is not None and self.buffer > self.concurrency:
            raise OptionError(
                f"buffer must be at most concurrency={self.concurrency}, the number of clients that work at the same "
                f"time, got {self.buffer}"
            )

    def cohort_size(self, cohort: int) -> int:
        """Return the number of clients that work at the same time."""
        return DEFAULT_CONCURRENCY * self.max_arrivals(cohort) if self.concurrency is None else self.concurrency

    def max_arrivals(self, cohort: int) -> int:
        """Return the number of arrivals that end a step."""
        return cohort if self.buffer is None else self.buffer

    def free_places(self, cohort_size: int, n_in_flight: int) -> int:
        """Return how many more clients may work."""
        return max(0, cohort_size - n_in_flight)

    def init(self, population: Population) -> int:
        """Return the state, which is the number of arrivals that end a step."""
        return self.max_arrivals(population.cohort)

    def close(self, state: int, finish_s: Values, announced_s: float) -> float:
        """Return the second of the `state`-th arrival; of the last one if fewer jobs are in flight, 0 without any."""
        if not len(finish_s):
            return 0.0
        n_awaited = min(state, len(finish_s))
        return float(np.partition(finish_s, n_awaited - 1)[n_awaited - 1])
