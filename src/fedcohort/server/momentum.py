"""FedAvgM: heavy-ball momentum on the pseudo-gradient (Hsu, Qi, Brown 2019).

    v <- beta v + G,   w <- w + lr v

There is no (1 - beta) damping: a constant G is amplified by 1 / (1 - beta), 20 times at the default beta = 0.95
(FedDiverse Sec. V-B). Momentum acts on parameters alone, and an empty round leaves v as it is.

Departures from the paper: that is its equation; its experiments take Nesterov's form, as reproductions of it do,
w <- w + lr (G + beta v), which isn't offered here.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.server.base import ServerOptimizer


@dataclass(frozen=True)
class State:
    """The velocity.

    Attributes:
        v: float64 [P].
    """

    v: Tensor


@dataclass(frozen=True)
class Momentum(ServerOptimizer[State]):
    """The server optimizer, with its options.

    Attributes:
        lr: the server learning rate eta_s.
        beta: the momentum.
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
