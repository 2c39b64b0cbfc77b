"""FedAdagrad: Adagrad on the server, over the aggregator's direction (Reddi et al. 2021, Alg. 2).

Reddi, Charles, Zaheer, Garrett, Rush, Konecny, Kumar, McMahan, "Adaptive Federated Optimization" (2021).

    m <- beta1 m + (1 - beta1) G,   v <- v + G^2,   w <- w + lr m / (sqrt(v) + tau)
    m = 0 and v = tau^2 before the first round, no bias correction

G is the direction of any aggregator. v only grows, so that steps shrink. beta1 = 0, the default and what the paper's
experiments take, is Adagrad without momentum. An empty round leaves m and v as they are.

Departures from the paper: its G is the equally weighted mean of the updates (agg.weighting=uniform).
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.server.base import ServerOptimizer
from fedcohort.server.moments import State, displace, first


@dataclass(frozen=True)
class Adagrad(ServerOptimizer[State]):
    """The server optimizer, with its options.

    Attributes:
        lr: the server learning rate eta.
        beta1: momentum.
        tau: the degree of adaptivity.
    """

    lr: float
    beta1: float
    tau: float

    def __post_init__(self) -> None:
        ranges.number("lr", self.lr, "(0, inf)")
        ranges.number("beta1", self.beta1, "[0, 1)")
        ranges.number("tau", self.tau, "(0, 1e30]")

    def init(self, n_params: int) -> State:
        return State.fresh(n_params, self.tau)

    def step(self, state: State, direction: Float[Tensor, "p"]) -> tuple[Float[Tensor, "p"], State]:
        was = state.to(direction)
        now = State(first(self.beta1, was.m, direction), was.v + direction**2)
        return displace(now, self.lr, self.tau), now
