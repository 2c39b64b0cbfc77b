"""LEAF's CNN for FEMNIST."""

import math

import pytest
import torch

from config_options import make_component
from fedcohort.errors import IncompatibleConfig


def test_leafs_femnist_network_has_the_published_size() -> None:
    """25 x 32 + 32, 25 x 32 x 64 + 64, 3,136 x 2,048 + 2,048 and 2,048 x 62 + 62."""
    network = make_component("model", "cnn_leaf_femnist").build((1, 28, 28), 62)
    assert sum(p.numel() for p in network.parameters()) == 832 + 51_264 + 6_424_576 + 127_038 == 6_603_710
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 62)


def test_initial_weights_follow_tensorflow() -> None:
    """A convolution's fans count its kernel: 25 x 32 in, 25 x 64 out. Biases are zero."""
    network = make_component("model", "cnn_leaf_femnist").build((1, 28, 28), 62)
    for layer, fans in ((3, 25 * 96), (7, 3136 + 2048)):
        bound = math.sqrt(6 / fans)
        assert 0.99 * bound < network[layer].weight.abs().max() <= bound * (1 + 1e-6)
        assert not network[layer].bias.any()


def test_leafs_femnist_network_rejects_other_image_shapes() -> None:
    with pytest.raises(
        IncompatibleConfig, match=r"^model=cnn_leaf_femnist needs images .* \[60\]: choose another model$"
    ):
        make_component("model", "cnn_leaf_femnist").build((60,), 10)
