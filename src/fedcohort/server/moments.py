"""The adaptive server optimizers of FedOpt (Reddi et al. 2021, Alg. 2), with two moments; subclasses update the second.

m:  m <- beta1 m + (1 - beta1) G, 0 before the first round
step:  w <- w + lr m / (sqrt(v) + tau), v = tau^2 before the first round
Adam:  v <- beta2 v + (1 - beta2) G^2
Yogi:  v <- v - (1 - beta2) G^2 sign(v - G^2)
Adagrad:  v <- v + G^2
"""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.server.base import ServerOptimizer

Vector = Float[Tensor, "p"]


@dataclass(frozen=True)
class State:
    """State of an adaptive server optimizer: two moments of the aggregator's updates (directions).

    Attributes:
        m: first moment, float64 [P].
        v: second moment, float64 [P].
    """

    m: Tensor
    v: Tensor


@dataclass(frozen=True)
class AdaptiveOptimizer(ServerOptimizer[State]):
    """A server optimizer with two moments, the base of FedAdam, FedYogi and FedAdagrad.

    Attributes:
        lr: server learning rate eta.
        beta1: decay of the first moment.
        tau: number that is added to the root of the second moment; a smaller one adapts steps more to that moment.
    """

    lr: float
    beta1: float
    tau: float

    def __post_init__(self) -> None:
        ranges.number("lr", self.lr, "(0, inf)")
        ranges.number("beta1", self.beta1, "[0, 1)")
        if hasattr(self, "beta2"):
            ranges.number("beta2", self.beta2, "[0, 1)")
        ranges.number("tau", self.tau, "(0, 1e30]")

    @abstractmethod
    def second_moment(self, v: Vector, direction: Vector) -> Vector:
        """Return the second moment after a round, [P].

        Args:
            v: second moment before the round, [P].
            direction: the aggregator's update in the round, [P].
        """

    def init(self, n_params: int) -> State:
        """Return the state before round 0: a first moment of 0, and a second moment of tau^2 as Alg. 2 requires.

        `n_params` is the number of model parameters P.
        """
        m = torch.zeros(n_params, dtype=torch.float64)
        return State(m, torch.full_like(m, self.tau**2))

    def step(self, state: State, direction: Vector) -> tuple[Vector, State]:
        m, v = state.m.to(direction.device), state.v.to(direction.device)
        next_state = State(self.beta1 * m + (1 - self.beta1) * direction, self.second_moment(v, direction))
        return self.lr * next_state.m / (next_state.v.sqrt() + self.tau), next_state
