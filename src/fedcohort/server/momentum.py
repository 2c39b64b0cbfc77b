"""FedAvgM: heavy-ball momentum on the pseudo-gradient (Hsu et al. 2019).

Hsu, Qi, Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019,
arXiv 1909.06335.

    velocity:  v <- beta v + G
    step:  w <- w + lr v

There is no damping by (1 - beta): a constant G is amplified by 1 / (1 - beta), 20 times at the default beta = 0.95
(FedDiverse Sec. V-B). Momentum acts on parameters only, and a round without arrivals leaves v unchanged.

Departures from the paper: this is its equation. Its experiments use Nesterov's form, w <- w + lr (G + beta v), which is
not implemented.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.server.base import ServerOptimizer


@dataclass(frozen=True)
class State:
    """State of FedAvgM that is kept between rounds.

    Attributes:
        v: velocity, a decaying sum of the aggregator's updates, float64 [P].
    """

    v: Tensor


@dataclass(frozen=True)
class Momentum(ServerOptimizer[State]):
    """FedAvgM, a server optimizer with heavy-ball momentum.

    Attributes:
        lr: server learning rate eta_s.
        beta: factor of the velocity per round.
    """

    lr: float
    beta: float

    def __post_init__(self) -> None:
        ranges.number("lr", self.lr, "(0, inf)")
        ranges.number("beta", self.beta, "[0, 1)")

    def init(self, n_params: int) -> State:
        return State(torch.zeros(n_params, dtype=torch.float64))

    def step(self, state: State, direction: Float[Tensor, "p"]) -> tuple[Float[Tensor, "p"], State]:
        v = self.beta * state.v.to(direction.device) + direction
        return self.lr * v, State(v)
