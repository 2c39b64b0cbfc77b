"""AFL: Mohri, Sivek, Suresh, "Agnostic Federated Learning" (2019). The worst mixture of the clients is minimised.

    min_w max_{lambda in simplex} sum_i lambda_i F_i(w)
    direction = sum_i lambda_i D_i / sum_j lambda_j over those who arrived
    then   lambda_i <- lambda_i + gamma F_i(w_t) for those who arrived,   lambda <- projection onto the simplex

lambda_i = 1/N at the start. Where all who arrived have lambda = 0, the round is a plain mean.

Under partial participation lambda ascends for those who arrived alone, and so leans towards clients that train often;
`unbiased` multiplies their ascent by N / m, which cures that for a selector that draws uniformly.

With `loss_cap`, and fewer than half of those who arrive lying, lambda_i grows by gamma loss_cap median(F) a round at
most (times N / m if unbiased), whatever client i claims: projecting lowers weights where losses are not negative.

`loss` chooses F_i (`agg/losses.py`); lambda ascends along the objective's gradient with that of w_t alone.

Departures from the paper: it takes one stochastic gradient a round from all clients and returns the mean of all w_t;
here clients train locally, some of them, and w_t is evaluated: an aggregator says how the model that clients get moves,
and a run evaluates that model alone. Weights that a selector's advice gives multiply lambda. Clients without a finite
loss are left out, of the ascent too; where nobody has one, the round is a plain mean.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import CLEAN_LABELS, RELATIVE_ADVICE, Requirement
from fedcohort.maths.simplex import project
from fedcohort.types import Ids, Population, Values

FULL_PARTICIPATION = Requirement(
    lambda run: run.full_participation,
    "{option} changes the weights of arriving clients only, and so favours clients that train often: choose "
    "{full_participation}, or agg.unbiased=true where clients are drawn uniformly",
)
NOTHING = 1e-12  # a joint lambda below it is projection's rounding


@dataclass(frozen=True)
class State:
    """What AFL learns.

    Attributes:
        mixture: lambda, on the simplex, float64 [n_clients].
    """

    mixture: Values


@dataclass(frozen=True)
class Afl(Aggregator[State]):
    """The aggregator, with its options.

    Attributes:
        gamma: step size of lambda, per nat.
        unbiased: ascend by N / m.
        loss, loss_cap: see `agg/losses.py`.
    """

    gamma: float
    loss: str
    unbiased: bool
    loss_cap: float | None

    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("gamma", self.gamma, "[0, 1e30]")
        ranges.choice("loss", self.loss, *losses.WORDS)
        ranges.flag("unbiased", self.unbiased)
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", optional=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.loss})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        remembered = set() if self.unbiased else {FULL_PARTICIPATION}
        return frozenset({CLEAN_LABELS} | remembered if self.gamma > 0 else ())

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({RELATIVE_ADVICE})

    def init(self, population: Population, n_params: int) -> State:
        return State(np.full(population.n_clients, 1 / population.n_clients))

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights("uniform", n_used, n_train)

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        rows, F = losses.read_losses(arrived, self.loss, self.loss_cap)
        if not len(rows):
            return Direction(arrived.mean), state
        clients, share = arrived.outcome.clients[rows], losses.shares(arrived, rows)
        weight = state.mixture[clients] * share
        weight = weight / weight.sum() if state.mixture[clients].sum() > NOTHING else share
        raised = state.mixture.copy()
        raised[clients] += self.gamma * F * (len(raised) / len(rows) if self.unbiased else 1.0)
        return arrived.combine(losses.over_all(arrived, rows, weight)), State(project(raised))
