"""The contract of a server optimizer: it applies the direction of any aggregator to the global model."""

from typing import Protocol, TypeVar

from jaxtyping import Float
from torch import Tensor

S = TypeVar("S")


class ServerOptimizer(Protocol[S]):
    """One whose step is a multiple of the direction says so: `plain = True`, a ClassVar or a property.

    It may have `remarks`, as selectors.
    """

    def init(self, n_params: int) -> S: ...

    def step(self, state: S, direction: Float[Tensor, "p"]) -> tuple[Float[Tensor, "p"], S]:
        """The displacement of w, float64 [P]. Not called in an empty round: no coasting."""
        ...
