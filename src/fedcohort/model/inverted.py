"""The layers of MobileNetV2 (Sandler et al. 2018): a chain of inverted residuals with linear bottlenecks.

Sandler, Howard, Zhu, Zhmoginov, Chen, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018, arXiv
1801.04381.

    block: conv1x1 to t times the channels, norm, ReLU6 -> depthwise conv3x3, norm, ReLU6 -> conv1x1, norm;   + x where
           the shape stays. A block with t = 1 has no first convolution.

MOBILENET_STAGES are from Table 2; the caller sets the channels. Tensors have the names of torchvision, so that
files of its weights fit. Convolutions have no bias, and weights from N(0, 2 / fan_out) (He et al. 2015). The
classifier's weights are from N(0, 0.01^2), its bias is 0, and normalisation layers start as the identity.
"""

from collections import OrderedDict

from torch import Tensor, nn

from fedcohort.model import norms

# expansion t, number of blocks, and stride of the first block, for each stage
MOBILENET_STAGES = ((1, 1, 1), (6, 2, 2), (6, 3, 2), (6, 4, 2), (6, 3, 1), (6, 3, 2), (6, 1, 1))


class InvertedResidual(nn.Module):
    """An inverted residual block: a 1x1, a depthwise 3x3 and a 1x1 convolution, with a shortcut if shapes match.

    `in_channels` and `out_channels` are the block's channels, `stride` that of the 3x3 convolution, which has
    `expansion` times the input channels. `norm_name` and `groups` are as in `make_mobilenet`.
    """

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, expansion: int, norm_name: str, groups: int
    ) -> None:
        super().__init__()
        inner_channels = in_channels * expansion
        pointwise = [_make_conv(in_channels, inner_channels, 1, 1, 1, norm_name, groups)] if expansion > 1 else []
        depthwise = _make_conv(inner_channels, inner_channels, 3, stride, inner_channels, norm_name, groups)
        projection = nn.Conv2d(inner_channels, out_channels, 1, bias=False)
        self.conv = nn.Sequential(*pointwise, depthwise, projection, norms.make_norm(norm_name, groups, out_channels))
        self.is_residual = stride == 1 and in_channels == out_channels

    def forward(self, x: Tensor) -> Tensor:
        block_output: Tensor = self.conv(x)
        return x + block_output if self.is_residual else block_output


def _make_conv(
    in_channels: int, out_channels: int, kernel_size: int, stride: int, conv_groups: int, norm_name: str, groups: int
) -> nn.Sequential:
    """Return a square convolution, followed by normalisation and ReLU6.

    `conv_groups` is the number of groups of the convolution; `norm_name` and `groups` are as in `make_mobilenet`. The
    other arguments are those of torch's convolution.
    """
    padding, norm_layer = kernel_size // 2, norms.make_norm(norm_name, groups, out_channels)
    conv_layer = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, groups=conv_groups, bias=False)
    return nn.Sequential(conv_layer, norm_layer, nn.ReLU6())


def make_mobilenet(
    image_channels: int, n_classes: int, layer_channels: tuple[int, ...], norm_name: str, groups: int
) -> nn.Sequential:
    """Return a MobileNetV2 from images to logits [B, n_classes], with new random weights.

    Args:
        image_channels: number of channels of an image.
        n_classes: number of classes.
        layer_channels: numbers of channels of the stem, of each stage, and of the last convolution.
        norm_name: normalisation layers: "group" for group norm, "batch" for batch norm.
        groups: number of groups of channels in each layer of group norm.
    """
    stem_channels, *stage_channels, last_channels = layer_channels
    features: list[nn.Module] = [_make_conv(image_channels, stem_channels, 3, 2, 1, norm_name, groups)]
    in_channels = stem_channels
    for (expansion, n_blocks, stride), out_channels in zip(MOBILENET_STAGES, stage_channels, strict=True):
        for block_index in range(n_blocks):
            block_stride = 1 if block_index else stride
            features.append(InvertedResidual(in_channels, out_channels, block_stride, expansion, norm_name, groups))
            in_channels = out_channels
    features.append(_make_conv(in_channels, last_channels, 1, 1, 1, norm_name, groups))
    classifier = nn.Sequential(OrderedDict({"1": nn.Linear(last_channels, n_classes)}))  # torchvision has dropout at 0
    layers = {"features": nn.Sequential(*features), "pool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
    network = nn.Sequential(OrderedDict[str, nn.Module](layers, classifier=classifier))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0.0, 0.01)
            nn.init.zeros_(module.bias)
    return network
