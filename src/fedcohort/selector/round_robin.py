"""Round robin: no client is selected again while another one was selected less often.

It is the fairness baseline of FedDiverse (Nemeth et al., arXiv 2504.11216, Sec. V-C.2).

    S:  the m available clients with the smallest R_k, one after the other
    after the selection:  R_k <- R_k + 1 for k in S

Departures from the paper:
- A round may finish one lap and begin the next where m does not divide K: applied to the cohort as a whole, the rule
  would leave places empty.
- Only available clients are compared, as one absent client would otherwise stop the run.
- A client that fails has had its turn, as R counts selections.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.selector.base import Selector, top
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, Selection


@dataclass(frozen=True)
class State:
    """State of round robin that is kept between rounds.

    Attributes:
        R: number of selections of each client, [n_clients].
    """

    R: Ids


@dataclass(frozen=True)
class RoundRobin(Selector[State]):
    """A selector of the clients that were selected least often (round robin).

    Attributes:
        tie: order of clients that were selected equally often: "random", or by "id".
    """

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
