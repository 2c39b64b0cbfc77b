"""Buffered asynchronous rounds: the server steps after a number of arrivals, while other clients go on working.

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, "Federated Learning with Buffered Asynchronous Aggregation",
AISTATS 2022, arXiv 2106.06639, Algorithm 1.

    selected:  as many clients as are missing for `concurrency` clients at work
    close:  the `buffer`-th arrival of all jobs that are in flight
    wait_for_stale = b:  not before the arrival of each job whose model is b server steps old

No update is then older. The bound b is that of the released code of Pisces (`selector/pisces.py`). The server does not
wait for clients that never return.

With agg=fedbuff this is FedBuff, and with agg=fedasync deadline.buffer=1 it is FedAsync. A step of the server is a
round of this program. If buffer = concurrency = cohort and refill=step, each step waits for all selected clients.

The selector chooses the clients of a step's start at once. At each arrival before the last of a step it is called again
for one client (refill=arrival). The model is the same, so that it gets the reports of the step's start again.

Departures from the paper:
- A client whose update waits in the buffer can't be selected until the server has stepped: it would train the same
  model again.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.deadline.base import time_of_arrival
from fedcohort.deadline.late_updates import LateUpdates
from fedcohort.errors import OptionError
from fedcohort.types import Population, Values

TIMED_REQUIREMENT = Requirement(
    lambda facts: facts.timed,
    "{option} lets late clients continue, but work takes no time with {device}, so that no client is late and every "
    "step waits for all clients (choose device=shifted_exponential, or deadline=wait_for_all)",
)
CONCURRENCY_REQUIREMENT = Requirement(
    lambda facts: facts.federation and facts.cohort >= facts.components.deadline.max_arrivals(facts.config["cohort"]),
    "{option}: deadline.concurrency is smaller than deadline.buffer (if null, cohort), so that a step never gets "
    "enough updates: raise deadline.concurrency, or lower deadline.buffer",
)
NO_LOSS_BASED_SAMPLES_REQUIREMENT = Requirement(
    lambda facts: not facts.components.samples.keeps_losses,
    "{option} starts clients during a round, in which {samples} can't compute the losses of their samples: choose "
    "deadline.refill=step, or samples=all",
)
DEFAULT_CONCURRENCY_RATIO = 2  # clients at work, over the size of the buffer


@dataclass(frozen=True, kw_only=True)
class Buffered(LateUpdates[int]):
    """A rule that ends a step of the server after a number of arrivals; its state is this number.

    Attributes:
        buffer: arrivals that end a step; None for the cohort of the run.
        concurrency: clients that work at the same time; None for twice the buffer.
        refill: "arrival" if another client starts at each arrival, "step" if free places stay empty until the server
            steps.
        wait_for_stale: staleness of updates for which the server waits before it steps; None if it waits for none.
        partial_work: always False, as late clients complete their work.
    """

    buffer: int | None
    concurrency: int | None
    refill: str
    wait_for_stale: int | None
    partial_work: bool = field(default=False, init=False)

    announces: ClassVar[bool] = False
    smaller_cohort_advice: ClassVar[str] = "set deadline.concurrency to fewer clients"
    carries: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({TIMED_REQUIREMENT})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("buffer", self.buffer, "[1, inf)", allow_null=True)
        ranges.integer("concurrency", self.concurrency, "[1, inf)", allow_null=True)
        ranges.choice("refill", self.refill, "arrival", "step")
        ranges.integer("wait_for_stale", self.wait_for_stale, "[1, inf)", allow_null=True)
        if self.buffer is not None and self.concurrency is not None and self.buffer > self.concurrency:
            raise OptionError(
                f"buffer must be at most concurrency={self.concurrency}, the number of clients that work at the same "
                f"time, got {self.buffer}"
            )

        if self.max_staleness is not None and self.wait_for_stale is not None:
            raise OptionError(
                f"wait_for_stale must be null with max_staleness={self.max_staleness}, which drops updates that are "
                f"too old instead of waiting for them, got {self.wait_for_stale}"
            )

    @property
    def refills(self) -> bool:
        return self.refill == "arrival"

    @property
    def requirements(self) -> frozenset[Requirement]:
        return super().requirements | {
            CONCURRENCY_REQUIREMENT,
            *((NO_LOSS_BASED_SAMPLES_REQUIREMENT,) if self.refills else ()),
        }

    def cohort_size(self, cohort: int) -> int:
        """Return the number of clients that work at the same time; `cohort` is the number that the run requests."""
        return DEFAULT_CONCURRENCY_RATIO * self.max_arrivals(cohort) if self.concurrency is None else self.concurrency

    def max_arrivals(self, cohort: int) -> int:
        """Return the number of arrivals that end a step; `cohort` is the number of clients that the run requests."""
        return cohort if self.buffer is None else self.buffer

    def free_places(self, cohort_size: int, n_in_flight: int) -> int:
        """Return how many clients may start while `n_in_flight` clients work, at most `cohort_size` at a time."""
        return max(0, cohort_size - n_in_flight)

    def init(self, population: Population) -> int:
        """Return the state, the number of arrivals that end a step; `population.cohort` is the run's cohort."""
        return self.max_arrivals(population.cohort)

    def awaited_staleness(self) -> int | None:
        return self.wait_for_stale

    def arrival_limit(self, state: int) -> int:
        """Return `state`, the number of arrivals that end a step; in the same second, lower ids arrive first."""
        return state

    def close(self, state: int, finish_s: Values, announced_s: float) -> float:
        """Return the second of the `state`-th arrival; of the last one if fewer jobs are in flight, 0 without any.

        Args:
            state: the number of arrivals that end a step.
            finish_s: seconds until each job in flight ends, [jobs].
            announced_s: not used, as no deadline is announced.
        """
        return time_of_arrival(finish_s, state)
