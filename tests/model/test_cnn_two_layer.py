"""A CNN of two convolutions and a classifier."""

import pytest
import torch

from config_options import make_component
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.model.cnn_two_layer import CnnTwoLayer


@pytest.mark.parametrize(("shape", "n_classes", "size"), [((3, 32, 32), 10, 94_666), ((3, 32, 32), 100, 463_396)])
def test_the_size_of_the_two_layer_cnn_by_hand(shape: tuple[int, ...], n_classes: int, size: int) -> None:
    """75 x 32 + 32, 25 x 32 x 64 + 64, and 4,097 a class."""
    network = make_component("model", "cnn_two_layer").build(shape, n_classes)
    assert sum(p.numel() for p in network.parameters()) == 2432 + 51_264 + 4097 * n_classes == size
    assert network(torch.zeros(2, *shape)).shape == (2, n_classes)


def test_channels_are_an_option() -> None:
    network = CnnTwoLayer([4, 6]).build((1, 9, 12), 2)
    assert [tuple(p.shape) for p in network.parameters()][::2] == [(4, 1, 5, 5), (6, 4, 5, 5), (2, 6 * 2 * 3)]
    with pytest.raises(OptionError, match=r"^channels must be a list of two integers, as \[32,64\], got \[8\]$"):
        CnnTwoLayer([8])


def test_the_two_layer_cnn_rejects_other_image_shapes() -> None:
    with pytest.raises(
        IncompatibleConfig, match=r"^model=cnn_two_layer needs images .* \[3, 3, 9\]: choose another model$"
    ):
        make_component("model", "cnn_two_layer").build((3, 3, 9), 10)
