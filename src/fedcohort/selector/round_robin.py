"""Round robin, the fairness baseline of FedDiverse (Sec. V-C.2): nobody trains again while somebody has trained less.

    S = the m available clients with the smallest R_k, one after the other;   R_k <- R_k + 1 for k in S

Departures from the paper:
- a round may finish one lap and begin the next where m does not divide K: the rule read for the cohort as a whole
  would leave places empty;
- only available clients are compared, or one absent client would stop the run;
- a client that fails has had its turn: R counts selections.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Selector, top
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class State:
    """Whose turn it is.

    Attributes:
        R: how often each client was selected.
    """

    R: Ids


@dataclass(frozen=True)
class RoundRobin(Selector[State]):
    """The clients that were selected least often. tie: "random", or "id" for cohorts in a fixed order."""

    tie: str

    def __post_init__(self) -> None:
        ranges.choice("tie", self.tie, "random", "id")

    def init(self, population: Population) -> State:
        return State(np.zeros(population.n_clients, np.int64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        scores = -state.R.astype(float)
        clients = top(scores, ctx.available, ctx.cohort, ctx.rng, self.tie)
        R = state.R.copy()
        R[clients] += 1
        return Selection(clients, scores), State(R)
