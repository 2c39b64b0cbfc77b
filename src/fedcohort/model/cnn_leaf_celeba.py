"""The CNN that LEAF trains on CelebA (Caldas et al. 2018): four convolutions with batch norm, one dense layer.

    4 x (conv 3x3, 32 -> batch norm -> max pool 2 -> ReLU) -> dense,   on 84x84x3: 84 -> 42 -> 21 -> 11 -> 6

31,202 parameters on 84x84x3 with two classes. Convolutions and pooling are padded ("same"): a side of 21 pixels becomes
11. Weights are TensorFlow's (`model.glorot`), and so is batch norm's epsilon of 0.001.

LEAF always calls batch norm with `training=True`, so that it has no running statistics: a sample is normalised by its
batch in evaluations, too. A prediction then depends on the other samples of the batch, and the server averages only the
scales and shifts of batch norm.

A client's samples are evaluated as one batch, as in LEAF, independently of other clients. The samples of the server are
evaluated a thousand at a time.

Departures from LEAF: its pixels are 0 to 255, a difference that the first batch norm removes. Its loss is a sum over
the batch, which corresponds to a learning rate times the batch size.
"""

from dataclasses import dataclass

from fedcohort.model.base import Model, Network, require_images

N_CONV_LAYERS, CONV_CHANNELS, BN_EPSILON = 4, 32, 1e-3
MIN_IMAGE_SIDE = 9  # pixels of a side: the last batch norm sees 2 x 2 pixels then, also of a batch of one image


@dataclass(frozen=True)
class CnnLeafCeleba(Model):
    """LEAF's CNN for CelebA: four 3x3 convolutions with batch norm and max pooling; it has no options."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from torch import nn  # noqa: PLC0415 - options are checked before torch is imported

        from fedcohort.model import glorot  # noqa: PLC0415

        channels, height, width = require_images("cnn_leaf_celeba", shape, MIN_IMAGE_SIDE)
        layers: list[nn.Module] = []
        for in_channels in (channels, *[CONV_CHANNELS] * (N_CONV_LAYERS - 1)):
            layers += [
                nn.Conv2d(in_channels, CONV_CHANNELS, 3, padding=1),
                nn.BatchNorm2d(CONV_CHANNELS, BN_EPSILON, track_running_stats=False),
                nn.MaxPool2d(2, ceil_mode=True),
                nn.ReLU(),
            ]
        n_pixels = -(-height // 2**N_CONV_LAYERS) * -(-width // 2**N_CONV_LAYERS)
        network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(CONV_CHANNELS * n_pixels, n_classes))
        glorot.draw_glorot_weights(network)
        return network
