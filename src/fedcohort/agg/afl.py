"""AFL: minimises the worst mixture of the clients' losses (Mohri et al. 2019).

Mohri, Sivek, Suresh, "Agnostic Federated Learning", ICML 2019, arXiv 1902.00146.

    objective:  min_w max_{lambda in simplex} sum_i lambda_i F_i(w)
    direction:  sum_i lambda_i D_i / sum_j lambda_j over the clients that arrived
    after it:  lambda_i <- lambda_i + gamma F_i(w_t) for these clients,  lambda <- projection onto the simplex

lambda_i is 1/N at the start. Where all arrivals have lambda = 0, the round is a plain mean. Under partial participation
only the arrivals ascend, so that clients that train often gain weight. unbiased=true multiplies the ascent by N / m,
which corrects this for selectors that draw uniformly. `loss` chooses F_i (`agg/losses.py`): only F_i(w_t) gives the
objective's gradient.

With loss_cap, and fewer than half of the arrivals lying, lambda_i grows by at most gamma loss_cap median(F) a round
(times N / m if unbiased), whatever client i reports: the projection only lowers weights where losses are not negative.

Departures from the paper:
- The paper takes one stochastic gradient a round from all clients, and returns the mean of all w_t. Here some clients
  train locally, and w_t is evaluated, as for every aggregator.
- Weights that a selector advises multiply lambda.
- Clients without a finite loss are left out, of the ascent too; where none has one, the round is a plain mean.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Arrived, Direction, EquallyWeighted
from fedcohort.component import CLEAN_LABELS, RELATIVE_ADVICE, Requirement
from fedcohort.maths.simplex import project_onto_simplex
from fedcohort.types import Population, Values

FULL_PARTICIPATION_REQUIREMENT = Requirement(
    lambda facts: facts.full_participation,
    "{option} changes the weights of arriving clients only, and so favours clients that train often: choose "
    "{full_participation}, or agg.unbiased=true where clients are drawn uniformly",
)
MIN_WEIGHT_SUM = 1e-12  # a smaller sum of lambda is rounding of the projection


@dataclass(frozen=True)
class State:
    """The state of AFL that is kept between rounds.

    Attributes:
        mixture: weight lambda_i of each client in the worst mixture, float64 [n_clients]; the weights sum to 1.
    """

    mixture: Values


@dataclass(frozen=True)
class Afl(EquallyWeighted[State]):
    """AFL, an aggregator that minimises the worst mixture of the clients' losses.

    Attributes:
        gamma: step by which a client's weight in the mixture grows, per nat of its loss.
        loss: signal that clients report as their loss (`agg/losses.py` lists them).
        unbiased: whether this step is multiplied by N / m, to correct for uniform draws of m of N clients.
        loss_cap: largest loss that counts, in multiples of the arrivals' median loss; None for no limit.
    """

    gamma: float
    loss: str
    unbiased: bool
    loss_cap: float | None

    stacked: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE})

    def __post_init__(self) -> None:
        ranges.number("gamma", self.gamma, "[0, 1e30]")
        ranges.choice("loss", self.loss, *losses.LOSS_SIGNALS)
        ranges.flag("unbiased", self.unbiased)
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", allow_null=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.loss})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        participation_requirements = set() if self.unbiased else {FULL_PARTICIPATION_REQUIREMENT}
        return frozenset({CLEAN_LABELS} | participation_requirements if self.gamma > 0 else ())

    def init(self, population: Population, n_params: int) -> State:
        return State(np.full(population.n_clients, 1 / population.n_clients))

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        positions_with_loss, F = losses.read_valid_losses(arrived, self.loss, self.loss_cap)
        if not len(positions_with_loss):
            return Direction(arrived.mean), state
        client_ids = arrived.outcome.clients[positions_with_loss]
        override_weights = losses.normalised_weights(arrived, positions_with_loss)
        client_weights = override_weights
        if state.mixture[client_ids].sum() > MIN_WEIGHT_SUM:
            client_weights = state.mixture[client_ids] * override_weights
            client_weights = client_weights / client_weights.sum()
        mixture = state.mixture.copy()
        mixture[client_ids] += self.gamma * F * (len(mixture) / len(positions_with_loss) if self.unbiased else 1.0)
        direction = arrived.combine(losses.spread_weights_to_clients(arrived, positions_with_loss, client_weights))
        return direction, State(project_onto_simplex(mixture))
