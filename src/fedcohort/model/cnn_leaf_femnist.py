"""The CNN that LEAF trains on FEMNIST (Caldas et al. 2018): two 5x5 convolutions, a dense layer of 2048 units.

    conv 5x5, 32, ReLU -> max pool 2 -> conv 5x5, 64, ReLU -> max pool 2 -> dense 2048, ReLU -> dense

6,603,710 parameters on 28x28x1 with 62 classes. Convolutions are padded ("same"); weights are TensorFlow's
(`model.glorot`). `model=cnn model.dense=2048` is the same network with torch's initial weights.

Departures from LEAF: none in the network, whose sizes follow the images and the number of classes. Pixels of
white paper are 1 in LEAF's data.
"""

from dataclasses import dataclass

from fedcohort.model.base import Model, Network, require_images

DENSE_UNITS = 2048


@dataclass(frozen=True)
class CnnLeafFemnist(Model):
    """LEAF's CNN for FEMNIST: two 5x5 convolutions with max pooling, and a large dense layer; it has no options."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from fedcohort.model import glorot, two_convolutions  # noqa: PLC0415 - options are checked before torch is imported

        image_shape = require_images("cnn_leaf_femnist", shape, 4)
        network = two_convolutions.make_two_conv_network(image_shape, (32, 64), DENSE_UNITS, n_classes)
        glorot.draw_glorot_weights(network)
        return network
