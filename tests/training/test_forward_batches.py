"""How many samples at once: by hand, of inputs and of the widest layer."""

import torch
from torch import nn

from fedcohort.training.forward_batches import MIN_SAMPLES_AT_ONCE, find_batch_size


def test_the_batch_size_of_a_narrow_network_is_limited_by_its_inputs() -> None:
    """64 MiB of inputs of 64 floats are 2^26 / 256 samples; ten outputs are narrower."""
    assert find_batch_size(nn.Linear(64, 10), torch.zeros(3, 64)) == 2**18


def test_the_batch_size_of_a_wide_network_is_limited_by_its_widest_layer() -> None:
    """512 MiB of 2^14 floats between two layers are 2^29 / 2^16 samples, where inputs alone would allow 2^24."""
    network = nn.Sequential(nn.Linear(1, 2**14), nn.ReLU(), nn.Linear(2**14, 2))
    assert find_batch_size(network, torch.zeros(3, 1)) == 2**13
    assert find_batch_size(nn.Linear(1, 3 * 2**12), torch.zeros(3, 1)) == 10922, "2^17 / 12, rounded down"


def test_the_batch_size_has_a_minimum_whatever_the_memory() -> None:
    assert find_batch_size(nn.Linear(2, 2**20), torch.zeros(1, 2)) == MIN_SAMPLES_AT_ONCE


def test_the_batch_size_is_found_for_empty_inputs_and_each_shape() -> None:
    pool = nn.AdaptiveAvgPool1d(1)
    assert find_batch_size(pool, torch.zeros(0, 4, 8)) == 2**19  # 2^26 / (4 x 32)
    assert find_batch_size(pool, torch.zeros(2, 4, 16)) == 2**18


def test_finding_the_batch_size_changes_no_statistics_or_gradients() -> None:
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    find_batch_size(network, torch.ones(5, 4))
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert not any(module._forward_hooks for module in network.modules())
