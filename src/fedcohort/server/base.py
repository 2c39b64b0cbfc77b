"""The contract of a server optimizer: it applies the direction of any aggregator to the global model."""

from abc import abstractmethod
from typing import Protocol, TypeVar

from jaxtyping import Float
from torch import Tensor

from fedcohort.component import Component

S = TypeVar("S")


class ServerOptimizer(Component, Protocol[S]):
    """A server optimizer: how the aggregator's direction (pseudo-gradient) changes the global model.

    Attributes:
        plain: whether the step is always a multiple of the aggregator's direction.
    """

    @property
    def plain(self) -> bool:
        return False

    @abstractmethod
    def init(self, n_params: int) -> S:
        """Return the server optimizer's state before round 0; `n_params` is the number of model parameters P."""

    @abstractmethod
    def step(self, state: S, direction: Float[Tensor, "p"]) -> tuple[Float[Tensor, "p"], S]:
        """Return the change of the global model, float64 [P], and the next state.

        The server does not call it in a round without arrivals.

        Args:
            state: the state before the step.
            direction: the aggregator's update (pseudo-gradient), float64 [P].
        """
