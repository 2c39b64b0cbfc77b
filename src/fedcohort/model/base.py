"""The contract of a model: it builds the network for a dataset's shape.

torch is imported by `build`, so that options out of their ranges are refused before seconds of imports.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn


class Model(Protocol):
    def build(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        """A network from inputs [B, *shape] to logits [B, n_classes]. Raises `IncompatibleConfig` for other shapes."""
        ...
