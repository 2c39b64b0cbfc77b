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


class Block(nn.Module):
    """A basic block from `inputs` to `outputs` channels with the given stride."""

    def __init__(self, inputs: int, outputs: int, stride: int, norm: str, groups: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = norms.make_norm(norm, groups, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = norms.make_norm(norm, groups, outputs)
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, norms.make_norm(norm, groups, outputs))

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(inner + self.shortcut(x))


def make_layers(
    channels: int, n_classes: int, widths: Sequence[int], blocks: int, norm: str, groups: int
) -> nn.Sequential:
    """Return a residual network with these numbers of channels and blocks.

    Args:
        channels: channels of an image.
        n_classes: number of logits.
        widths: channels of each stage.
        blocks: number of blocks of each stage.
        norm: "group" or "batch".
        groups: groups of channels in each layer of group norm.
    """
    layers = [nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False), norms.make_norm(norm, groups, widths[0]), nn.ReLU()]
    inputs = widths[0]
    for stage, outputs in enumerate(widths):
        for block in range(blocks):
            layers.append(Block(inputs, outputs, 2 if stage and not block else 1, norm, groups))
            inputs = outputs
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, n_classes))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
