"""FedMABA: an adversarial bandit gives weight to clients whose losses are high (Wang et al. 2024).

Wang, Wang, Guo, Zhang, Tang, "FedMABA: Towards Fair Federated Learning through Multi-Armed Bandits Allocation" (2024),
Sec. IV-B, Alg. 1.

    log q_i = log p_i + eta F_i(w_t),   p^_i = q_i^s / sum_j q_j^s,   s = 1 / (1 + lambda)          (Eq. 9)
    lambda: 0 where KL(p^ || 1/n) <= rho already, else the root of KL(p^ || 1/n) = rho              (Eq. 10)
    direction = alpha sum_i p^_i D_i + (1 - alpha) mean_i D_i                                       (Eq. 11)
    p_i <- p^_i sum_{j arrived} p_j   for those who arrived;   p = 1/N at the start

over the n that arrived. F_i is that of w_t, before training; with `loss=train_loss` the by-product of it, and with
`loss=loss_post` that of what client i has trained (`agg/losses.py`), both more alike: rho then rarely binds. Losses
enter p round after round; only those who arrive are updated.

Without `loss_cap` a client's claims are limited by rho alone (the paper leaves attacks open, Sec. VI). With it, and
fewer than half of those who arrive lying, ln(p_i / p_j) of a liar i against any other client j is after a round at most
x = eta loss_cap median(F) above what it was, or 0, whatever i claims: from equal weights one liar of n gets at most
alpha e^x / (e^x + n - 1) + (1 - alpha) / n of the direction. That is for one round: claims add up in p, and who goes
on lying gets, later, what rho allows.

Departures from the paper: Eq. 10 has log N, with which no root exists once N > n e^rho: log n here. Alg. 1 writes p^
into p as it is (`sync=literal`), which lets p sum to more than 1 and weighs those who have trained N / n times heavier
than those who have not: `sync=mass` keeps their joint weight. A fixed interval for lambda fails for large losses:
`maths/kl_ball.py` brackets it. Clients without a finite loss are left out; where nobody has one, the round is a plain
mean. Weights that a selector advises take the place of the mean's 1/n alone: the bandit's share has weights of its own.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import CLEAN_LABELS, RELATIVE_ADVICE, UNADVISED_WEIGHTS, Requirement
from fedcohort.maths.kl_ball import tilt
from fedcohort.types import Ids, Population, Values

FULL_PARTICIPATION = Requirement(
    lambda run: run.full_participation,
    "{option} changes the weights of arriving clients only, and so favours clients that train often: choose "
    "{full_participation}, or agg.sync=mass",
)
TINY = 1e-300  # the least weight that the logarithm sees


@dataclass(frozen=True)
class State:
    """What the bandit has learnt.

    Attributes:
        p: its weights, float64 [n_clients].
    """

    p: Values


@dataclass(frozen=True)
class FedMaba(Aggregator[State]):
    """The aggregator, with its options.

    Attributes:
        eta: step size, per nat.
        alpha: the bandit's share of the direction.
        rho: the ball's radius, nats.
        loss: a word of `agg/losses.py`.
        sync: "mass" or "literal".
        weighting: of the mean that is mixed in, as FedAvg's.
        loss_cap: times the median, see `agg/losses.py`.
    """

    eta: float
    alpha: float
    rho: float
    loss: str
    sync: str
    weighting: str
    loss_cap: float | None

    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("eta", self.eta, "(0, inf)")
        ranges.number("alpha", self.alpha, "[0, 1]")
        ranges.number("rho", self.rho, "[0, inf)")
        ranges.choice("loss", self.loss, *losses.WORDS)
        ranges.choice("sync", self.sync, "mass", "literal")
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", optional=True)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.loss})

    @property
    def recommendations(self) -> frozenset[Requirement]:
        remembered = {FULL_PARTICIPATION} if self.sync == "literal" else set()
        return frozenset({CLEAN_LABELS, UNADVISED_WEIGHTS} | remembered if self.alpha > 0 else ())

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({RELATIVE_ADVICE})

    def init(self, population: Population, n_params: int) -> State:
        return State(np.full(population.n_clients, 1 / population.n_clients))

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: State, arrived: Arrived) -> tuple[Direction, State]:
        rows, F = losses.read_losses(arrived, self.loss, self.loss_cap)
        if not len(rows):
            return Direction(arrived.mean), state
        clients = arrived.outcome.clients[rows]
        p = state.p[clients]
        p_hat, _ = tilt(np.log(np.maximum(p, TINY)) + self.eta * F, self.rho)
        after = state.p.copy()
        after[clients] = p_hat if self.sync == "literal" else p.sum() * p_hat
        mixed = self.alpha * p_hat + (1 - self.alpha) * losses.shares(arrived, rows)
        return arrived.combine(losses.over_all(arrived, rows, mixed)), State(after)
