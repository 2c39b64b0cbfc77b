"""The contract of a model: it builds the network for a dataset's shape."""

from typing import Protocol

from torch import nn


class Model(Protocol):
    def build(self, shape: tuple[int, ...], n_classes: int) -> nn.Module:
        """A network from inputs [B, *shape] to logits [B, n_classes]. Raises `IncompatibleConfig` for other shapes."""
        ...
