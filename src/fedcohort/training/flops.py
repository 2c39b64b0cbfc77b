"""The floating-point operations of a forward pass."""

import inspect

import torch
from torch import nn
from torch.utils import flop_counter

from fedcohort.data.federation import Federation
from fedcohort.training.recurrent import spelled_out


class _Counting(flop_counter._FlopCounterMode):
    """The dispatch mode of torch's counter, without the import of `torch._dynamo`, which takes 1.7 s.

    torch excludes the method below from compilation by a wrapper, whose first call imports the compiler. Nothing is
    compiled here. Depends on `torch.utils.flop_counter._FlopCounterMode` (torch 2.13.0).
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, so that this class gets no such wrapper."""
        return False

    __torch_dispatch__ = inspect.unwrap(flop_counter._FlopCounterMode.__torch_dispatch__)


def forward_flops(network: nn.Module, federation: Federation) -> float:
    """Return the FLOPs of one sample's forward pass, as `torch.utils.flop_counter.FlopCounterMode` counts them."""
    sample = torch.zeros_like(federation.server_test.x[:1])
    training, counter = network.training, flop_counter.FlopCounterMode(display=False)
    network.eval()
    with spelled_out(network), _Counting(counter), torch.no_grad():
        network(sample)
    network.train(training)
    return float(counter.get_total_flops())
