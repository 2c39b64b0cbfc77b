"""Logistic regression."""

import torch

from yaml_words import make


def test_one_affine_map() -> None:
    network = make("model", "logreg").build((1, 28, 28), 62)
    assert sum(p.numel() for p in network.parameters()) == 784 * 62 + 62
    assert network(torch.zeros(3, 1, 28, 28)).shape == (3, 62)
