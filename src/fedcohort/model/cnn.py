"""The CNN of FedAvg and LEAF: two padded 5x5 convolutions (32, 64 channels) with 2x2 max pooling, one dense layer.

512 dense units as in FedAvg (1,663,370 parameters on 28x28x1 with 10 classes); LEAF's FEMNIST has 2048. McMahan,
Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient Learning of Deep Networks from Decentralized Data",
AISTATS 2017, arXiv 1602.05629. Caldas et al., "LEAF: A Benchmark for Federated Settings", 2018, arXiv 1812.01097.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.model.base import Model, Network, require_images


@dataclass(frozen=True)
class Cnn(Model):
    """FedAvg's CNN for images: two 5x5 convolutions with max pooling, and one dense layer.

    Attributes:
        dense: number of units of the dense layer.
    """

    dense: int

    def __post_init__(self) -> None:
        ranges.integer("dense", self.dense, "[1, inf)")

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from fedcohort.model import two_convolutions  # noqa: PLC0415 - options are checked before torch is imported

        return two_convolutions.make_two_conv_network(require_images("cnn", shape, 4), (32, 64), self.dense, n_classes)
