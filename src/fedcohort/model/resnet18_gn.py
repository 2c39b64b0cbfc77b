"""ResNet-18 for images of 32 x 32 (He et al. 2016), with group norm: a 3x3 stem, no max pooling, 64 to 512 channels.

11,173,962 parameters with three channels and ten classes. Group norm (Wu and He 2018) takes the place of batch norm,
which performs worse if clients have different classes (Hsieh et al. 2020); `norm=batch` restores it. FLASH trains a
"ResNet-18" without stating its stem or normalisation.

Departures from the paper: He et al. train ImageNet, with a 7x7 stem of stride 2 and max pooling, which would leave one
pixel of a small image. 32 groups are those of Wu and He. Details are in `model.residual`.
"""

from dataclasses import dataclass

from fedcohort.model.base import Model, Network, check_norm_groups, require_images

STAGE_CHANNELS, BLOCKS_PER_STAGE = (64, 128, 256, 512), 2  # channels of each stage, blocks in each
MIN_IMAGE_SIDE = 2 ** (len(STAGE_CHANNELS) - 1)  # pixels of a side: every stage but the first halves it


@dataclass(frozen=True)
class ResNet18(Model):
    """ResNet-18 for small images, with group norm.

    Attributes:
        norm: normalisation layers: "group" for group norm, "batch" for batch norm.
        groups: number of groups of channels in each layer of group norm.
    """

    norm: str
    groups: int

    def __post_init__(self) -> None:
        check_norm_groups(self.norm, self.groups, STAGE_CHANNELS)

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        channels, *_ = require_images("resnet18_gn", shape, MIN_IMAGE_SIDE)
        from fedcohort.model import residual  # noqa: PLC0415 - options are checked before torch is imported

        return residual.make_resnet(channels, n_classes, STAGE_CHANNELS, BLOCKS_PER_STAGE, self.norm, self.groups)
