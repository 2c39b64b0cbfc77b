"""The CNN of FedAvg."""

import pytest
import torch

from config_options import make_component
from fedcohort.errors import IncompatibleConfig


def test_its_size_is_that_of_the_paper() -> None:
    network = make_component("model", "cnn").build((1, 28, 28), 10)
    assert sum(p.numel() for p in network.parameters()) == 1_663_370  # McMahan et al. 2017, Sec. 3
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_the_variant_of_leaf() -> None:
    network = make_component("model", "cnn", dense=2048).build((1, 28, 28), 62)
    assert sum(p.numel() for p in network.parameters()) == 6_603_710  # LEAF's FEMNIST model


def test_other_shapes_are_rejected() -> None:
    with pytest.raises(IncompatibleConfig, match=r"model=cnn needs images .* the inputs are \[60\]"):
        make_component("model", "cnn").build((60,), 10)
