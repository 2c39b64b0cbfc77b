"""What the adaptive server optimizers of FedOpt share (Reddi et al. 2021, Alg. 2): two moments and the step they make.

m <- beta1 m + (1 - beta1) G,   w <- w + lr m / (sqrt(v) + tau),   before the first round m = 0 and v = tau^2
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class State:
    """What changes between rounds.

    Attributes:
        m, v: first and second moment of the directions, float64 [P].
    """

    m: Tensor
    v: Tensor

    @classmethod
    def fresh(cls, n_params: int, tau: float) -> "State":
        """Alg. 2 asks for v_{-1} >= tau^2."""
        return cls(torch.zeros(n_params, dtype=torch.float64), torch.full((n_params,), tau**2, dtype=torch.float64))

    def to(self, direction: Float[Tensor, "p"]) -> "State":
        """Return the state on the device of `direction`."""
        return State(self.m.to(direction.device), self.v.to(direction.device))


def first(beta1: float, m: Float[Tensor, "p"], direction: Float[Tensor, "p"]) -> Float[Tensor, "p"]:
    return beta1 * m + (1 - beta1) * direction


def displace(state: State, lr: float, tau: float) -> Float[Tensor, "p"]:
    """Return lr m / (sqrt(v) + tau), [P]."""
    return lr * state.m / (state.v.sqrt() + tau)
