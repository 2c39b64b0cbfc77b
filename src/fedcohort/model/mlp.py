"""A multi-layer perceptron with ReLU; two hidden layers of 200 units are the "2NN" of McMahan et al. 2017."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.model.base import Model, Network


@dataclass(frozen=True)
class Mlp(Model):
    """A multi-layer perceptron with ReLU activations, on the flattened sample.

    Attributes:
        hidden: number of units of each hidden layer; an empty list gives logistic regression.
    """

    hidden: Sequence[int]

    def __post_init__(self) -> None:
        ranges.integers("hidden", self.hidden, "[1, inf)")

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from torch import nn  # noqa: PLC0415 - options are checked before torch is imported

        layer_widths = [math.prod(shape), *(int(layer_width) for layer_width in self.hidden)]
        layers: list[nn.Module] = [nn.Flatten()]
        for in_features, out_features in itertools.pairwise(layer_widths):
            layers += [nn.Linear(in_features, out_features), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(layer_widths[-1], n_classes))
