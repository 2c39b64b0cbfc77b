"""ResNet-18 for small images."""

import math

import pytest
import torch
from torch import nn

from config_options import make_component
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.flat import FlatModel
from fedcohort.model.resnet18_gn import ResNet18


def test_the_size_of_resnet18_by_hand() -> None:
    """Stem 9 x 3 x 64; a stage of w from v channels: 9 v w + 27 w w, and v w in the shortcut of all but the first.

    Two numbers a channel in each norm: one in the stem, four in a stage, one in a shortcut. 512 x 10 + 10 at the end.
    """
    stages = [(64, 64), (64, 128), (128, 256), (256, 512)]
    convolutions = 27 * 64 + sum(9 * v * w + 27 * w * w for v, w in stages) + sum(v * w for v, w in stages[1:])
    norms = 2 * (64 + 4 * sum(w for _, w in stages) + sum(w for _, w in stages[1:]))
    assert convolutions + norms + 5130 == 11_173_962
    for norm in ("group", "batch"):
        network = make_component("model", "resnet18_gn", norm=norm).build((3, 32, 32), 10)
        assert sum(p.numel() for p in network.parameters()) == 11_173_962


def test_images_are_halved_three_times() -> None:
    network = make_component("model", "resnet18_gn").build((1, 28, 28), 7)
    sides, x = [], torch.zeros(1, 1, 28, 28)
    for layer in network[:-3]:
        x = layer(x)
        sides.append(x.shape[2])
    assert sides == [28, 28, 28, 28, 28, 14, 14, 7, 7, 4, 4]
    assert network[-3:](x).shape == (1, 7)


def test_initial_weights_follow_he_et_al() -> None:
    """Variance 2 / (9 x 512); the sample's own has the relative error sqrt(2 / n)."""
    network = make_component("model", "resnet18_gn").build((3, 32, 32), 10)
    weight = network[-4].conv2.weight
    assert weight.var().item() == pytest.approx(2 / (9 * 512), rel=5 * math.sqrt(2 / weight.numel()))
    assert all(m.weight.eq(1).all() and not m.bias.any() for m in network.modules() if isinstance(m, nn.GroupNorm))


def test_with_batch_norm_the_statistics_are_buffers() -> None:
    """4,800 channels are normed: 64 in the stem, 4 x 960 in the stages, 896 in the shortcuts."""
    layout = FlatModel(make_component("model", "resnet18_gn", norm="batch").build((3, 32, 32), 10)).layout
    means, variances = layout.batch_norm_positions()
    assert (layout.n_params, layout.n_buffers, len(means), len(variances)) == (11_173_962, 9600, 4800, 4800)
    assert FlatModel(make_component("model", "resnet18_gn").build((3, 32, 32), 10)).layout.n_buffers == 0


def test_groups_that_do_not_divide_the_channels_are_rejected() -> None:
    expected = r"^groups must be a divisor of every layer's channels \(64, 128, 256, 512\), got 48$"
    with pytest.raises(OptionError, match=expected):
        ResNet18("group", 48)
    assert ResNet18("batch", 48).norm == "batch"


def test_too_small_images_are_rejected() -> None:
    expected = r"^model=resnet18_gn needs images .* 8x8, but the inputs are \[3, 8, 7\]: choose another model$"
    with pytest.raises(IncompatibleConfig, match=expected):
        make_component("model", "resnet18_gn").build((3, 8, 7), 10)
    assert make_component("model", "resnet18_gn").build((3, 8, 8), 10)(torch.rand(2, 3, 8, 8)).shape == (2, 10)
