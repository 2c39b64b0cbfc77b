"""ResNet-8, the smallest network of the CIFAR family of He et al. (2016, Sec. 4.2), with group norm: for CPUs.

6n + 2 layers with n = 1 (in the paper n >= 3): a 3x3 stem and three stages of 16, 32 and 64 channels with one
block each. 78,042 parameters with three channels and ten classes, a 143rd of ResNet-18's.

Departures from the paper: group norm with 8 groups takes the place of batch norm (`norm=batch` brings it back), as in
`resnet18_gn`; and shortcuts between stages are 1x1 convolutions, where He et al. pad with zeros. `width` makes it
narrower or wider than the paper's networks. Details are in `model.residual`.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.model.base import Model, Network, check_norm_groups, require_images

N_STAGES, BLOCKS_PER_STAGE = 3, 1  # blocks in each
MIN_IMAGE_SIDE = 2 ** (N_STAGES - 1)  # pixels of a side: every stage but the first halves it


@dataclass(frozen=True)
class ResNet8(Model):
    """ResNet-8, a small residual network with group norm for CPUs.

    Attributes:
        norm: normalisation layers: "group" for group norm, "batch" for batch norm.
        groups: number of groups of channels in each layer of group norm.
        width: number of channels of the first stage; each further stage has twice as many as the one before.
    """

    norm: str
    groups: int
    width: int

    def __post_init__(self) -> None:
        ranges.integer("width", self.width, "[1, inf)")
        check_norm_groups(self.norm, self.groups, self.stage_channels)

    @property
    def stage_channels(self) -> tuple[int, ...]:
        """Number of channels of each stage of residual blocks."""
        return tuple(self.width * 2**stage for stage in range(N_STAGES))

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        channels, *_ = require_images("resnet8_gn", shape, MIN_IMAGE_SIDE)
        from fedcohort.model import residual  # noqa: PLC0415 - options are checked before torch is imported

        return residual.make_resnet(channels, n_classes, self.stage_channels, BLOCKS_PER_STAGE, self.norm, self.groups)
