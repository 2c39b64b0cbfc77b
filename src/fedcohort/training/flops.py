"""The floating-point operations of a forward pass."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fedcohort.data.federation import Federation
from fedcohort.training.recurrent import spelled_out


def forward_flops(network: nn.Module, federation: Federation) -> float:
    """Return the FLOPs of one sample's forward pass."""
    sample = torch.zeros_like(federation.server_test.x[:1])
    training = network.training
    network.eval()
    with spelled_out(network), FlopCounterMode(display=False) as counter, torch.no_grad():
        network(sample)
    network.train(training)
    return float(counter.get_total_flops())
