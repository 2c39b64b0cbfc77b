"""Logistic regression."""

import torch

from config_options import make_component


def test_logistic_regression_is_one_affine_map() -> None:
    network = make_component("model", "logreg").build((1, 28, 28), 62)
    assert sum(p.numel() for p in network.parameters()) == 784 * 62 + 62
    assert network(torch.zeros(3, 1, 28, 28)).shape == (3, 62)
