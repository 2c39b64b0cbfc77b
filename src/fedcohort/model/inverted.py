"""The layers of MobileNetV2 (Sandler et al. 2018): a chain of inverted residuals with linear bottlenecks.

Sandler, Howard, Zhu, Zhmoginov, Chen, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018, arXiv
1801.04381.

    block: conv1x1 to t times the channels, norm, ReLU6 -> depthwise conv3x3, norm, ReLU6 -> conv1x1, norm;   + x where
           the shape stays. A block with t = 1 has no first convolution.

STAGES are from Table 2 of the paper; the caller sets their channels. Tensors have the names of torchvision, so that
files of its weights fit. Convolutions have no bias, and weights from N(0, 2 / fan_out) (He et al. 2015). The
classifier's weights are from N(0, 0.01^2), its bias is 0, and normalisation layers start as the identity.
"""

from collections import OrderedDict

from torch import Tensor, nn

from fedcohort.model import norms

STAGES = ((1, 1, 1), (6, 2, 2), (6, 3, 2), (6, 4, 2), (6, 3, 1), (6, 3, 2), (6, 1, 1))  # t, blocks, stride of the first


class Block(nn.Module):
    """An inverted residual block from `inputs` to `outputs` channels, with inputs * expand channels inside."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int, norm: str, groups: int) -> None:
        super().__init__()
        expanded_channels = inputs * expand
        layers: list[nn.Module] = [_norm_conv(inputs, expanded_channels, 1, 1, 1, norm, groups)] if expand > 1 else []
        layers.append(_norm_conv(expanded_channels, expanded_channels, 3, stride, expanded_channels, norm, groups))
        layers += [nn.Conv2d(expanded_channels, outputs, 1, bias=False), norms.make_norm(norm, groups, outputs)]
        self.conv = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x)
        return x + out if self.is_residual else out


def _norm_conv(inputs: int, outputs: int, size: int, stride: int, n_sets: int, norm: str, groups: int) -> nn.Sequential:
    """Return a convolution with `n_sets` groups of channels, followed by normalisation and ReLU6."""
    conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=n_sets, bias=False)
    return nn.Sequential(conv, norms.make_norm(norm, groups, outputs), nn.ReLU6())


def make_layers(channels: int, n_classes: int, widths: tuple[int, ...], norm: str, groups: int) -> nn.Sequential:
    """Return a MobileNetV2 with these numbers of channels.

    Args:
        channels: channels of an image.
        n_classes: number of logits.
        widths: channels of the stem, of each stage, and of the last convolution.
        norm: "group" or "batch".
        groups: groups of channels in each layer of group norm.
    """
    stem, *stages, last = widths
    features: list[nn.Module] = [_norm_conv(channels, stem, 3, 2, 1, norm, groups)]
    inputs = stem
    for (expand, blocks, stride), outputs in zip(STAGES, stages, strict=True):
        for block in range(blocks):
            features.append(Block(inputs, outputs, 1 if block else stride, expand, norm, groups))
            inputs = outputs
    features.append(_norm_conv(inputs, last, 1, 1, 1, norm, groups))
    network = nn.Sequential(
        OrderedDict[str, nn.Module](
            features=nn.Sequential(*features),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            classifier=nn.Sequential(OrderedDict({"1": nn.Linear(last, n_classes)})),  # torchvision has dropout at 0
        )
    )
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0.0, 0.01)
            nn.init.zeros_(module.bias)
    return network
