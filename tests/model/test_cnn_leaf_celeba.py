"""LEAF's CNN for CelebA, which norms by the batch at hand, always."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from config_options import make_component
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import FlatModel
from run_harness import startup_notices


def build(shape: tuple[int, ...] = (3, 84, 84)) -> Any:
    return make_component("model", "cnn_leaf_celeba").build(shape, 2)


def test_leafs_celeba_network_has_the_published_size() -> None:
    """896 and 3 x 9,248 in convolutions, 4 x 64 in norms, 1,152 x 2 + 2 at the end, as 84 becomes 42, 21, 11, 6."""
    network = build()
    assert sum(p.numel() for p in network.parameters()) == 896 + 27_744 + 256 + 2306 == 31_202
    sides, x = [], torch.zeros(2, 3, 84, 84)
    for layer in network[:-2]:
        x = layer(x)
        sides += [x.shape[2]] if isinstance(layer, nn.MaxPool2d) else []
    assert sides == [42, 21, 11, 6]


def test_padding_follows_tensorflow() -> None:
    """An odd side's last pixel is pooled alone: nothing of it is lost."""
    pool = build()[2]
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    assert pool(x).flatten().tolist() == [4, 5, 7, 8]


def test_evaluation_normalises_by_the_batch_too() -> None:
    """The logits are those of training mode, another batch gives others, and there is nothing to average."""
    network, x = build((3, 16, 16)), torch.rand(4, 3, 16, 16)
    trained = network(x)
    network.eval()
    torch.testing.assert_close(network(x), trained)
    assert not torch.allclose(network(x[:2]), trained[:2])
    layout = FlatModel(network).layout
    assert (layout.n_buffers, len(layout.counters)) == (0, 0)


def test_the_scale_of_pixels_does_not_matter() -> None:
    """To epsilon over the variance of what is normed, where pixels are 0 to 255; at 0 to 1 epsilon is felt."""
    network, x = build((3, 16, 16)), 255 * torch.rand(8, 3, 16, 16)

    def normalise(x: Tensor) -> Tensor:
        output: Tensor = network(x)
        return output

    torch.testing.assert_close(normalise(x), normalise(10 * x), atol=1e-3, rtol=1e-3)


def test_clients_are_trained_sequentially_and_small_images_are_rejected() -> None:
    worker = FlatModel(build((3, 16, 16)))
    assert worker.has_batch_norm, "which engines and mini-batches of one sample go by"
    with pytest.raises(
        IncompatibleConfig,
        match=r"^model=cnn_leaf_celeba needs images .* at least 9x9, .* \[1, 8, 8\]: choose another model$",
    ):
        build((1, 8, 8))
    assert build((1, 9, 9))(torch.rand(1, 1, 9, 9)).shape == (1, 2)


def test_only_a_norm_with_statistics_gives_a_notice() -> None:
    notices = startup_notices("agg=scaffold", "model=cnn", network=build((3, 16, 16)))
    assert not any("batch norm" in line for line in notices)
