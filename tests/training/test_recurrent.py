"""Fused kernels and the same layers spelled out give the same numbers, and only the latter can be looked into."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedcohort.flat import has_recurrence
from fedcohort.training.forward_batches import MAX_LAYER_BYTES, MIN_SAMPLES_AT_ONCE, find_batch_size
from fedcohort.training.recurrent import disable_fused_kernels


class Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps, _ = self.lstm(x)
        last: torch.Tensor = steps[:, -1]
        return last


def test_flops_of_a_recurrent_layer() -> None:
    """A step multiplies 4 * 5 x 3 and 4 * 5 x 5 weights: 2 * 20 * 8 FLOPs, and there are 7 steps."""
    network, x = Last(), torch.randn(1, 7, 3)
    with disable_fused_kernels(network), FlopCounterMode(display=False) as counter, torch.no_grad():
        output = network(x)
    assert counter.get_total_flops() == 7 * 2 * 20 * 8
    torch.testing.assert_close(output, network(x).detach())


def test_the_torch_flags_are_restored_after_the_block() -> None:
    before = torch.backends.mkldnn.enabled
    with disable_fused_kernels(Last()):
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled == before
    with disable_fused_kernels(nn.Linear(1, 1)):
        assert torch.backends.mkldnn.enabled == before


def test_recurrent_networks_are_recognised() -> None:
    assert has_recurrence(Last())
    assert not has_recurrence(nn.Sequential(nn.Linear(1, 1), nn.ReLU()))


def test_states_of_all_steps_count_as_a_layers_output() -> None:
    """With 2^17 steps of 5 states a sample takes 2.6 MB: 204 samples would fit, and 256 are the least."""
    assert find_batch_size(Last(), torch.zeros(1, 2**17, 3)) == MIN_SAMPLES_AT_ONCE
    assert find_batch_size(Last(), torch.zeros(1, 1000, 3)) == min(2**26 // 12_000, MAX_LAYER_BYTES // 20_000)
