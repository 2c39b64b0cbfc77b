"""A CNN of two convolutional layers, for FedMABA's experiments on CIFAR-10 and CIFAR-100 (Wang et al. 2024, Sec. IV).

    conv 5x5, 32, ReLU -> max pool 2 -> conv 5x5, 64, ReLU -> max pool 2 -> dense

94,666 parameters on 32x32x3 with ten classes. `model=cnn` has an additional hidden dense layer.

Departures from the paper: it only states "a two-layer CNN". Kernels, channels, padding ("same") and pooling are those
of FedAvg's CNN (McMahan et al. 2017). We interpret "two-layer" as two convolutions followed by the classifier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.model.base import Model, Network, require_images


@dataclass(frozen=True)
class CnnTwoLayer(Model):
    """FedMABA's CNN: two 5x5 convolutions with max pooling, and the classifier.

    Attributes:
        channels: numbers of output channels of the first and of the second convolution.
    """

    channels: Sequence[int]

    def __post_init__(self) -> None:
        ranges.integers("channels", self.channels, "[1, inf)")
        if len(self.channels) != 2:
            raise ranges.range_error("channels", "a list of two integers, as [32,64]", list(self.channels))

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from fedcohort.model import two_convolutions  # noqa: PLC0415 - options are checked before torch is imported

        image_shape, (first_channels, second_channels) = require_images("cnn_two_layer", shape, 4), self.channels
        return two_convolutions.make_two_conv_network(image_shape, (first_channels, second_channels), 0, n_classes)
