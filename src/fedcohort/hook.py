"""The client half of a method: what it does to a gradient, what it sends, what it remembers.

Order in a training step (specs G.2): backward, then each hook's `correct` in the order aggregator, regulariser; the
aggregator's hook sees the raw mini-batch gradient.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jaxtyping import Float
from torch import Tensor

Vector = Float[Tensor, "_p"]


@dataclass(frozen=True)
class Sent:
    """What a client sends beside its update, and what it keeps once the server has acknowledged it."""

    uploads: Mapping[str, Tensor] = field(default_factory=dict)
    stored: Mapping[str, Tensor] = field(default_factory=dict)


class Correction(Protocol):
    """One client's local training."""

    def correct(self, g: Vector, y: Vector) -> None:
        """Change the gradient `g` at the local model `y` in place, before the optimizer sees it."""
        ...

    def finish(self, y: Vector, steps: int, lr: float) -> Sent:
        """After the last step. `lr`: the round's local learning rate."""
        ...


class Hook(Protocol):
    """downloads, uploads: names of the vectors of P floats that travel beside the model. remembers: kept by clients."""

    @property
    def downloads(self) -> tuple[str, ...]: ...

    @property
    def uploads(self) -> tuple[str, ...]: ...

    @property
    def remembers(self) -> tuple[str, ...]: ...

    def begin(self, w: Vector, down: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> Correction:
        """w: the broadcast model. down: the aggregator's broadcast. stored: what this client kept, {} at first."""
        ...
