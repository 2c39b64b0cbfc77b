"""The network that FedBalancer trains on UCI-HAR: one convolution over time, one dense layer (Shin et al. 2022).

    [9, 128] -> convolution, 192 channels, kernel 16, 'same', ReLU -> max pooling 4 -> [192, 32]
             -> Dense 256, ReLU -> Dense

1,602,502 parameters with 6 classes, 6,410,008 bytes. An even kernel has no middle: as in TensorFlow, 'same' pads with 7
zeros before the window and 8 after it. Weights are uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010),
biases zero, which are the defaults of TensorFlow's layers.

Windows pass as images one row high: with the channel fastest in memory (`engine.channels_last`), which only images can
have, pooling is vectorised, and a step takes a seventh less.

Departures from the paper: TensorFlow flattens 32 x 192, time first, and this network 192 x 32: the dense layer's inputs
stand in another, fixed order, which changes nothing of what is learnt, as its weights are drawn independently.
"""

from dataclasses import dataclass

from fedcohort.errors import IncompatibleConfig
from fedcohort.model.base import Model, Network

WINDOW_SHAPE = (9, 128)  # signals, samples of a window
CONV_CHANNELS, KERNEL_LENGTH, POOL_LENGTH, DENSE_UNITS = 192, 16, 4, 256
ZEROS_BEFORE, ZEROS_AFTER = 7, 8  # zeros, KERNEL - 1 together: the output is as long as the input


@dataclass(frozen=True)
class HarCnn(Model):
    """A CNN for the sensor windows of UCI HAR: one convolution over time and a dense layer; it has no options."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from torch import nn  # noqa: PLC0415 - options are checked before torch is imported

        from fedcohort.model import glorot  # noqa: PLC0415

        if tuple(shape) != WINDOW_SHAPE:
            raise IncompatibleConfig(
                f"model=har_cnn needs windows [signals, samples] of {list(WINDOW_SHAPE)}, as dataset=uci_har has them; "
                f"the inputs are {list(shape)}: choose another model"
            )
        n_signals, window_length = WINDOW_SHAPE
        network = nn.Sequential(
            nn.Unflatten(1, (n_signals, 1)),
            nn.ZeroPad2d((ZEROS_BEFORE, ZEROS_AFTER, 0, 0)),
            nn.Conv2d(n_signals, CONV_CHANNELS, (1, KERNEL_LENGTH)),
            nn.ReLU(),
            nn.MaxPool2d((1, POOL_LENGTH)),
            nn.Flatten(),
            nn.Linear(CONV_CHANNELS * (window_length // POOL_LENGTH), DENSE_UNITS),
            nn.ReLU(),
            nn.Linear(DENSE_UNITS, n_classes),
        )
        glorot.draw_glorot_weights(network)
        return network
