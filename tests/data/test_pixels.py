"""Bytes that a network converts: the same numbers, whatever calls it."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

from fedcohort.data.pixels import PixelScale
from image_tables import random_images

SCALE = PixelScale((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))
PIXELS = random_images(6, (3, 4, 5))


def network() -> nn.Module:
    module = nn.Sequential(nn.Flatten())
    SCALE.attach_to_network(module)
    return module


def test_the_pixel_scale_by_hand() -> None:
    """A white pixel is (1 - mean) / sd."""
    x = PixelScale((0.5, 0.0), (0.25, 1.0)).convert(np.array([[[[255]], [[51]]]], np.uint8))
    np.testing.assert_allclose(x[0, :, 0, 0], [(1 - 0.5) / 0.25, 0.2], rtol=1e-6)
    assert x.dtype == np.float32


def test_the_network_converts_to_the_same_bits_in_any_layout() -> None:
    expected = torch.from_numpy(SCALE.convert(PIXELS)).flatten(1)
    pixels = torch.from_numpy(PIXELS)
    assert torch.equal(network()(pixels), expected)
    assert torch.equal(network()(pixels.contiguous(memory_format=torch.channels_last)), expected)
    assert torch.equal(copy.deepcopy(network())(pixels), expected)
    assert torch.equal(pixels, torch.from_numpy(PIXELS)), "what was given stays"


def test_the_conversion_works_under_vmap_too() -> None:
    module, pixels = network(), torch.from_numpy(PIXELS).reshape(2, 3, 3, 4, 5)
    converted = vmap(lambda x: functional_call(module, {}, (x,)))(pixels)
    assert torch.equal(converted.flatten(0, 1), torch.from_numpy(SCALE.convert(PIXELS)).flatten(1))


def test_float_inputs_are_unchanged() -> None:
    x = torch.rand(2, 3, 4, 5)
    assert torch.equal(network()(x), x.flatten(1))


def test_the_scale_is_not_part_of_the_networks_state() -> None:
    module = nn.Linear(2, 2)
    before = list(module.state_dict())
    SCALE.attach_to_network(module)
    assert list(module.state_dict()) == before


def test_inputs_with_another_number_of_channels_are_rejected() -> None:
    with pytest.raises(RuntimeError, match="must match"):
        network()(torch.zeros((1, 2, 4, 5), dtype=torch.uint8))
