"""MobileNetV2 (Sandler et al. 2018) with group norm, which FedDiverse trains (Nemeth et al., Sec. V-B).

2,236,682 parameters with three channels and ten classes. FedDiverse replaces batch norm by group norm, and starts from
weights pretrained on ImageNet. `weights` is a file of such weights, with torchvision's names of tensors. A file of a
network with batch norm is accepted, too, without its statistics. Its weights, scales and shifts were then trained for
another normalisation.

Departures from the paper: images may be smaller, down to 17 x 17 pixels, which are reduced to one (FedDiverse trains it
on MNIST's 28 x 28). The classifier has no dropout. FedDiverse does not state the number of groups; eight divides the
channels of every layer at every width. Details are in `model.inverted`.
"""

from dataclasses import dataclass
from pathlib import Path

from fedcohort import ranges
from fedcohort.model.base import Model, Network, check_norm_groups, require_images

CHANNELS_AT_WIDTH_1 = (32, 16, 24, 32, 64, 96, 160, 320)  # of the stem and the stages, at width 1
LAST_CHANNELS, MAX_EXPANSION, CHANNEL_STEP = 1280, 6, 8
MIN_IMAGE_SIDE = 17  # pixels of a side: each of the five halvings then reduces it, to one in the end


@dataclass(frozen=True)
class MobileNetV2(Model):
    """MobileNetV2 with group norm, optionally with pretrained weights.

    Attributes:
        width: factor of the channels of all layers, which are rounded to multiples of eight; the last layer has at
            least 1280.
        norm: normalisation layers: "group" for group norm, "batch" for batch norm.
        groups: number of groups of channels in each layer of group norm.
        weights: path of a file of pretrained weights; None to draw initial weights.
    """

    width: float
    norm: str
    groups: int
    weights: str | None

    def __post_init__(self) -> None:
        ranges.number("width", self.width, "(0, 10]")
        inner_channels = {MAX_EXPANSION * n_channels for n_channels in self.layer_channels[1:-2]}
        check_norm_groups(self.norm, self.groups, {*self.layer_channels, *inner_channels})
        ranges.text("weights", self.weights, allow_null=True)
        if self.weights is not None and not Path(self.weights).is_file():
            raise ranges.range_error("weights", "the path of a file, or null", self.weights)

    @property
    def layer_channels(self) -> tuple[int, ...]:
        """Numbers of channels of the stem, of each stage, and of the last convolution."""
        last_channels = _round_to_step(max(1.0, self.width) * LAST_CHANNELS)
        return (*(_round_to_step(self.width * n_channels) for n_channels in CHANNELS_AT_WIDTH_1), last_channels)

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        channels, *_ = require_images("mobilenet_v2_gn", shape, MIN_IMAGE_SIDE)
        from fedcohort.model import inverted, pretrained  # noqa: PLC0415 - options are checked before torch is imported

        network = inverted.make_mobilenet(channels, n_classes, self.layer_channels, self.norm, self.groups)
        if self.weights is not None:
            pretrained.load_weights(network, Path(self.weights), "classifier.")
        return network


def _round_to_step(n_channels: float) -> int:
    """Return the multiple of 8 nearest to `n_channels`, or the next one if that is below 0.9 x `n_channels`."""
    nearest_multiple = max(CHANNEL_STEP, int(n_channels + CHANNEL_STEP / 2) // CHANNEL_STEP * CHANNEL_STEP)
    return nearest_multiple if nearest_multiple >= 0.9 * n_channels else nearest_multiple + CHANNEL_STEP
