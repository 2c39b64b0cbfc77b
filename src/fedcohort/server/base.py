"""The contract of a server optimizer: it applies the direction of any aggregator to the global model."""

from abc import abstractmethod
from typing import Protocol, TypeVar

from jaxtyping import Float
from torch import Tensor

from fedcohort.component import Component

S = TypeVar("S")


class ServerOptimizer(Component, Protocol[S]):
    """A server optimizer: how the aggregator's direction changes the global model.

    Attributes:
        plain: whether the step is a multiple of the direction.
    """

    @property
    def plain(self) -> bool:
        return False

    @abstractmethod
    def init(self, n_params: int) -> S:
        """Return the server optimizer's state before round 0; n_params: number of model parameters P."""

    @abstractmethod
    def step(self, state: S, direction: Float[Tensor, "p"]) -> tuple[Float[Tensor, "p"], S]:
        """Return the displacement of w, float64 [P], and the next state; not called in a round without arrivals."""
