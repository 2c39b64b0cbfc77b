"""Hand-written gradients on images, compared with those of autograd."""

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from config_options import make_component
from fedcohort.data.pixels import PixelScale
from fedcohort.flat import FlatModel
from fedcohort.rng import seeded_torch
from fedcohort.training import chain
from fedcohort.training.chain import find_dense_chain
from fedcohort.training.chain_pass import DenseChainPass
from fedcohort.training.step import PlainSgdStep, StepwisePass

PIECES = [(0, 4), (4, 8), (8, 13)]  # the last one is the longest, as where a batch of one joins the one before it
SCALE = PixelScale((0.4,), (0.2,))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))


def train_network(network: nn.Module, x: torch.Tensor, manual: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and losses after a pass over x, 13 images."""
    model, y = FlatModel(copy.deepcopy(network)), torch.arange(13) % 3
    objective, client = make_component("objective", "ce"), make_component("client", "sgd")
    if manual:
        chain = find_dense_chain(model, None if x.is_floating_point() else SCALE)
        assert chain is not None
        return model.w, DenseChainPass(model, chain, objective, client, 0.5, ())(x, y, None, PIECES)
    return model.w, StepwisePass(PlainSgdStep(model, objective, 0.5))(x, y, None, PIECES)


@pytest.mark.parametrize("make_network", [perceptron, convolutions])
def test_a_hand_written_pass_equals_autograd(make_network: Callable[[], nn.Module]) -> None:
    with seeded_torch(3, "weights"):
        network, x = make_network().double(), torch.randn(13, 1, 4, 4, dtype=torch.float64)
    (a, losses), (b, other_losses) = (train_network(network, x, manual) for manual in (True, False))
    assert not torch.equal(a, FlatModel(network).w)
    torch.testing.assert_close(a, b, atol=1e-13, rtol=0)
    np.testing.assert_allclose(losses, other_losses, atol=1e-13)


def test_front_layers_convert_uint8_pixels_to_the_same_bits() -> None:
    with seeded_torch(3, "weights"):
        network = convolutions()
    pixels = torch.arange(13 * 16, dtype=torch.uint8).reshape(13, 1, 4, 4)
    (a, losses), (b, other_losses) = (train_network(network, x, True) for x in (pixels, SCALE.convert_tensor(pixels)))
    assert torch.equal(a, b)
    assert losses.tolist() == other_losses.tolist()


def test_a_network_without_front_layers_on_uint8_inputs_is_no_dense_chain() -> None:
    assert find_dense_chain(FlatModel(perceptron()), SCALE) is None
    assert find_dense_chain(FlatModel(convolutions()), SCALE) is not None


class Doubled(nn.Sequential):
    """A network whose layers are those of a chain, but whose forward pass is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self:
            x = layer(2 * x)
        return x


def test_a_network_with_a_custom_forward_is_no_dense_chain() -> None:
    """It would be trained without it, and evaluated with it."""
    assert find_dense_chain(FlatModel(Doubled(nn.Flatten(), nn.Linear(4, 2)))) is None
    for place in ("", "1"):
        network = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
        network.get_submodule(place).register_forward_pre_hook(lambda module, inputs: (2 * inputs[0],))
        assert find_dense_chain(FlatModel(network)) is None


def test_a_linear_model_has_no_front_and_one_layer() -> None:
    kinds = {
        "linear": perceptron(),
        "two layers": nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 3)),
        "front": convolutions(),
    }
    chains = {name: find_dense_chain(FlatModel(network)) for name, network in kinds.items()}
    assert [name for name, chain in chains.items() if chain is not None and chain.is_linear] == ["linear"]


@pytest.mark.parametrize("n_classes", [3, 1025])
def test_one_hot_rows_are_those_of_the_identity_matrix(n_classes: int) -> None:
    """Without the identity itself, which is 40 GB for 100,000 classes."""
    labels = torch.tensor([[0, n_classes - 1], [2, 1]])
    rows = chain.make_one_hot(labels, n_classes, torch.float32)
    assert torch.equal(rows, torch.eye(n_classes)[labels])
