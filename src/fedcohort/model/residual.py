"""Residual networks for small images (He et al. 2016): a 3x3 stem without pooling, and stages of basic blocks.

He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, arXiv 1512.03385.

    block: y = ReLU(norm(conv3x3(ReLU(norm(conv3x3(x))))) + shortcut(x))

The first block of every stage except the first halves the image. If the shape changes, the shortcut is a 1x1
convolution with normalisation (He et al.'s option B), else the identity. Convolutions have no bias, and weights from
N(0, 2 / fan_out) (He et al. 2015); normalisation layers start as the identity.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.model import norms


class BasicBlock(nn.Module):
    """A basic residual block of two 3x3 convolutions with normalisation, and a shortcut.

    `in_channels` and `out_channels` are the block's channels, `stride` that of the first convolution. `norm_name` and
    `norm_groups` are as in `make_resnet`.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int, norm_name: str, norm_groups: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
        self.norm1 = norms.make_norm(norm_name, norm_groups, out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.norm2 = norms.make_norm(norm_name, norm_groups, out_channels)
        self.shortcut = nn.Sequential()
        if stride > 1 or in_channels != out_channels:
            shortcut_projection = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)
            self.shortcut = nn.Sequential(shortcut_projection, norms.make_norm(norm_name, norm_groups, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + self.shortcut(x))


def make_resnet(
    image_channels: int,
    n_classes: int,
    stage_channels: Sequence[int],
    blocks_per_stage: int,
    norm_name: str,
    norm_groups: int,
) -> nn.Sequential:
    """Return a residual network from images to logits [B, n_classes], with new random weights.

    Args:
        image_channels: number of channels of an image.
        n_classes: number of classes.
        stage_channels: number of channels of each stage.
        blocks_per_stage: number of residual blocks in each stage.
        norm_name: normalisation layers: "group" for group norm, "batch" for batch norm.
        norm_groups: number of groups of channels in each layer of group norm.
    """
    in_channels = stage_channels[0]
    stem_conv = nn.Conv2d(image_channels, in_channels, 3, 1, 1, bias=False)
    layers = [stem_conv, norms.make_norm(norm_name, norm_groups, in_channels), nn.ReLU()]
    for stage_number, out_channels in enumerate(stage_channels):
        for block_index in range(blocks_per_stage):
            block_stride = 2 if stage_number and not block_index else 1
            layers.append(BasicBlock(in_channels, out_channels, block_stride, norm_name, norm_groups))
            in_channels = out_channels
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(in_channels, n_classes))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
