"""The CNN of FedAvg."""

import pytest
import torch

from config_options import make_component
from fedcohort.errors import IncompatibleConfig


def test_the_cnn_has_the_size_of_the_paper() -> None:
    network = make_component("model", "cnn").build((1, 28, 28), 10)
    assert sum(p.numel() for p in network.parameters()) == 1_663_370  # McMahan et al. 2017, Sec. 3
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_the_network_of_leaf_has_its_published_size() -> None:
    network = make_component("model", "cnn", dense=2048).build((1, 28, 28), 62)
    assert sum(p.numel() for p in network.parameters()) == 6_603_710  # LEAF's FEMNIST model


def test_the_cnn_rejects_other_image_shapes() -> None:
    with pytest.raises(IncompatibleConfig, match=r"model=cnn needs images .* the inputs are \[60\]"):
        make_component("model", "cnn").build((60,), 10)
