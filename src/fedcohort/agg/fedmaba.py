"""FedMABA: an adversarial bandit gives weight to clients with high losses (Wang et al. 2024).

Wang, Wang, Guo, Zhang, Tang, "FedMABA: Towards Fair Federated Learning through Multi-Armed Bandits Allocation", arXiv
2410.20141, Sec. IV-B, Alg. 1.

    prior:  log q_i = log p_i + eta F_i(w_t)
    weights:  p^_i = q_i^s / sum_j q_j^s, s = 1 / (1 + lambda)    (Eq. 9)
    lambda:  0 if KL(p^ || 1/n) <= rho, else the root of KL(p^ || 1/n) = rho    (Eq. 10)
    direction:  alpha sum_i p^_i D_i + (1 - alpha) mean_i D_i    (Eq. 11)
    after it:  p_i <- p^_i sum_{j arrived} p_j for the n clients that arrived;  p = 1/N at the start

F_i is the loss of w_t before training. loss=train_loss and loss=loss_post (`agg/losses.py`) differ less between
clients, so that rho is rarely reached. Losses accumulate in p over rounds; only arrivals are updated.

Without loss_cap only rho limits the effect of false reports (the paper leaves attacks open, Sec. VI). With a cap, let
fewer than half of the arrivals lie. One round then raises ln(p_i / p_j) of a liar i against any other client j by at
most x = eta loss_cap median(F), or to 0. From equal weights one liar of n gets at most alpha e^x / (e^x + n - 1) +
(1 - alpha) / n of the direction. Repeated false reports accumulate in p, up to what rho allows.

Departures from the paper:
- Eq. 10 has log N, with which no root exists once N > n e^rho. Here it is log n.
- Alg. 1 stores p^ in p (sync=literal), so that p sums to more than 1, and clients that have trained weigh N / n times
  more than the others. sync=mass keeps their joint weight.
- A fixed interval for lambda fails for large losses; `maths/kl_ball.py` brackets the root.
- Clients without a finite loss are left out; where none has one, the round is a plain mean.
- Weights that a selector advises replace 1/n in the mean only; the bandit's part has its own weights.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Arrived, Direction, SampleWeighted
from fedcohort.component import CLEAN_LABELS, RELATIVE_ADVICE, UNADVISED_WEIGHTS, Requirement
from fedcohort.maths.kl_ball import tilt_within_kl_ball
from fedcohort.types import Population, Values

FULL_PARTICIPATION_REQUIREMENT = Requirement(
    lambda facts: facts.full_participation,
    "{option} changes the weights of arriving clients only, and so favours clients that train often: choose "
    "{full_participation}, or agg.sync=mass",
)
MIN_CLIENT_WEIGHT = 1e-300  # smallest weight that a logarithm is taken of


@dataclass(frozen=True)
class State:
    """The state of FedMABA that is kept between rounds.

    Attributes:
        p: weights of the clients in the bandit, float64 [n_clients].
    """

    p: Values


@dataclass(frozen=True)
class FedMaba(SampleWeighted[State]):
    """FedMABA, an aggregator whose adversarial bandit gives weight to clients with high losses.

    Attributes:
        eta: step size of the bandit, per nat.
        alpha: share of the bandit's weights in the server update; the rest is the plain mean of the updates.
        rho: largest divergence of the bandit's weights from equal ones, in nats.
        loss: signal that clients report as their loss (`agg/losses.py` lists them).
        sync: sum of the weights that the bandit keeps for the arrived clients: "mass" leaves it unchanged, "literal"
            sets it to 1, as printed in the paper.
        loss_cap: largest loss that counts, in multiples of the arrivals' median loss; None for no limit.
    """

    eta: float
    alpha: float
    rho: float
    loss: str
    sync: str
    loss_cap: float | None

    stacked: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("eta", self.eta, "(0, 1e30]")
        ranges.number("alpha", self.alpha, "[0, 1]")
        ranges.number("rho", self.rho, "[0, inf)")
        ranges.choice("loss", self.loss, *losses.LOSS_SIGNALS)
        ranges.choice("sync", self.sync, "mass", "literal")
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", allow_null=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.loss})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        participation_requirements = {FULL_PARTICIPATION_REQUIREMENT} if self.sync == "literal" else set()
        return frozenset({CLEAN_LABELS, UNADVISED_WEIGHTS} | participation_requirements if self.alpha > 0 else ())

    def init(self, population: Population, n_params: int) -> State:
        return State(np.full(population.n_clients, 1 / population.n_clients))

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        positions_with_loss, F = losses.read_valid_losses(arrived, self.loss, self.loss_cap)
        if not len(positions_with_loss):
            return Direction(arrived.mean), state
        client_ids = arrived.outcome.clients[positions_with_loss]
        p = state.p[client_ids]
        p_hat, _ = tilt_within_kl_ball(np.log(np.maximum(p, MIN_CLIENT_WEIGHT)) + self.eta * F, self.rho)
        next_weights = state.p.copy()
        next_weights[client_ids] = p_hat if self.sync == "literal" else p.sum() * p_hat
        client_weights = self.alpha * p_hat + (1 - self.alpha) * losses.normalised_weights(arrived, positions_with_loss)
        direction = arrived.combine(losses.spread_weights_to_clients(arrived, positions_with_loss, client_weights))
        return direction, State(next_weights)
