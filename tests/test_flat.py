"""A model is a vector: views, not copies."""

import copy

import pytest
import torch
from torch import nn

from fedcohort.flat import FlatModel, can_norm_one_sample
from optional_values import not_none


def network() -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    net[0].bias.requires_grad_(False)
    return net


def test_parameters_and_gradients_are_views() -> None:
    model = FlatModel(network())
    model.w.fill_(0.5)
    assert all(bool((p == 0.5).all()) for p in model.parameters)
    model.network(torch.randn(6, 3)).sum().backward()
    assert torch.equal(torch.cat([not_none(p.grad).flatten() for p in model.parameters]), model.g)
    assert float(model.g.abs().sum()) > 0


def test_flattening_changes_no_value() -> None:
    net = network()
    before = copy.deepcopy(net.state_dict())
    after = FlatModel(net).network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_frozen_parameters_are_kept_with_the_buffers_and_counters_separately() -> None:
    layout = FlatModel(network()).layout
    assert "0.bias" in [b.name for b in layout.buffers]
    assert [b.name for b in layout.counters] == ["1.num_batches_tracked"]
    assert layout.n_params == 12 + 4 + 4 + 8 + 2
    means, variances = layout.batch_norm_positions()
    assert len(means) == len(variances) == 4


def test_a_value_for_each_tensor_is_repeated_for_its_parameters() -> None:
    layout = FlatModel(network()).layout
    assert [b.name for b in layout.parameters] == ["0.weight", "1.weight", "1.bias", "2.weight", "2.bias"]
    repeated = layout.repeat_for_parameters(torch.tensor([5.0, 1, 2, 3, 4]))
    assert repeated.tolist() == 12 * [5] + 4 * [1] + 4 * [2] + 8 * [3] + 2 * [4]


def test_training_updates_the_buffers_in_the_vector() -> None:
    model = FlatModel(network())
    buffers = model.buffers.clone()
    model.network.train()
    model.network(torch.randn(6, 3))
    assert not torch.equal(buffers, model.buffers)
    assert model.counters.tolist() == [1]
    assert model.counters.dtype == torch.int64


def test_a_state_dict_loads_through_the_views() -> None:
    model, second = FlatModel(network()), network()
    model.network.load_state_dict(second.state_dict())
    assert torch.equal(model.w, torch.cat([p.detach().flatten() for p in second.parameters() if p.requires_grad]))


def test_a_broadcast_copies_everything() -> None:
    a, b = FlatModel(network()), FlatModel(network())
    a.network.train()
    a.network(torch.randn(6, 3))
    b.copy_from(a)
    assert all(
        torch.equal(x, y) for x, y in zip(a.network.state_dict().values(), b.network.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize(
    ("layer", "drops"),
    [
        (nn.Dropout(0.1), True),
        (nn.LSTM(2, 2, 2, dropout=0.1), True),
        (nn.LSTM(2, 2, 2), False),
        (nn.MultiheadAttention(2, 1, 0.1), True),
        (nn.MultiheadAttention(2, 1), False),
    ],
)
def test_dropout_layers_are_detected(layer: nn.Module, drops: bool) -> None:
    assert FlatModel(nn.Sequential(nn.Linear(2, 2), layer)).has_dropout == drops


def test_batch_norm_needs_two_values_per_channel() -> None:
    """A single sample has one of each of the four; a single image has one at each of its places."""
    dense, image = network(), nn.Sequential(nn.BatchNorm2d(1))
    before = copy.deepcopy(dense.state_dict())
    assert not can_norm_one_sample(dense, torch.randn(1, 3))
    assert can_norm_one_sample(image, torch.randn(1, 1, 2, 2))
    assert not can_norm_one_sample(image, torch.randn(1, 1, 1, 1))
    assert can_norm_one_sample(nn.Sequential(nn.Linear(3, 4), nn.GroupNorm(2, 4)), torch.randn(1, 3))
    assert all(torch.equal(value, before[name]) for name, value in dense.state_dict().items())
