"""The multi-layer perceptron."""

import torch

from config_options import make_component


def test_the_2nn_of_the_fedavg_paper_has_199210_parameters() -> None:
    network = make_component("model", "mlp").build((1, 28, 28), 10)
    assert sum(p.numel() for p in network.parameters()) == 199_210  # McMahan et al. 2017, Sec. 3
    assert network(torch.zeros(3, 1, 28, 28)).shape == (3, 10)


def test_without_hidden_layers_it_is_logistic_regression() -> None:
    network = make_component("model", "mlp", hidden=[]).build((60,), 10)
    assert sum(p.numel() for p in network.parameters()) == 610
