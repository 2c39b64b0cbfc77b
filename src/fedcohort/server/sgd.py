"""Server SGD: w <- w + lr G, where G is the aggregator's direction; lr = 1 is plain averaging.

Departures from the paper: none.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.server.base import ServerOptimizer


@dataclass(frozen=True)
class Sgd(ServerOptimizer[None]):
    """Server SGD, a server optimizer that adds the aggregator's update times the learning rate.

    Attributes:
        lr: server learning rate eta_s.
    """

    lr: float

    plain: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("lr", self.lr, "(0, inf)")

    def init(self, n_params: int) -> None:
        """Return None, as server SGD keeps no state; `n_params` is not read."""

    def step(self, state: None, direction: Float[Tensor, "p"]) -> tuple[Float[Tensor, "p"], None]:
        return self.lr * direction, None
