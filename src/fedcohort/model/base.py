"""The contract of a model: it builds the network for a dataset's shape.

torch is imported by `build`, so that options out of their ranges are refused before seconds of imports.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

from fedcohort.part import Part

if TYPE_CHECKING:
    from torch import nn


class Model(Part, Protocol):
    """A network for any data."""

    @abstractmethod
    def build(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        """A network from inputs [B, *shape] to logits [B, n_classes]. Raises `IncompatibleConfig` for other shapes."""
