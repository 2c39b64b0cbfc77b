"""The layout of images in memory.

With the channel fastest ("channels last"), convolutions on CPUs take a tenth to a fifth less time. Shapes stay
[N, C, H, W]; only strides differ.
"""

import torch
from torch import Tensor, nn

from fedcohort.data.federation import Federation, Rows, Shard
from fedcohort.ranges import refuse

FEW = 8  # input channels from which on a strided 1x1 convolution is safe


def wants_channels_last(word: str, network: nn.Module) -> bool:
    """Return whether images are laid out channels-last.

    word: `engine.channels_last`; auto is yes where the network convolves images, and torch does so without a fault.
    """
    if word == "auto":
        return any(isinstance(module, nn.Conv2d) for module in network.modules()) and find_faulty(network) is None
    return word == "yes"


def find_faulty(network: nn.Module) -> str | None:
    """Return the first convolution that torch can't train channels-last on a CPU, None where there is none.

    torch 2.13 writes out of bounds in a 1x1 convolution with a stride and few input channels (of a transposed one:
    output channels). With malloc's checks it ended at 2 to 6 channels, strides 2, 3 and 4 and any number of output
    channels; never at 1, or at 7 to 17, nor with kernels of 2 to 5, with groups, or in the default layout.
    """
    for name, module in network.named_modules():
        if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d) or module.groups > 1:
            continue
        thin = module.in_channels if isinstance(module, nn.Conv2d) else module.out_channels
        if module.kernel_size == (1, 1) and max(module.stride) > 1 and thin < FEW:
            return f"{name}, a 1x1 convolution of stride {max(module.stride)} over {thin} channels"
    return None


def check(word: str, network: nn.Module, accelerator: str) -> None:
    """Raise `OptionError` where channels-last is asked for, and would overwrite other memory.

    word: `engine.channels_last`.
    """
    if word == "yes" and accelerator == "cpu" and (faulty := find_faulty(network)) is not None:
        allowed = f"auto or no for this network, as torch writes out of bounds on CPUs in {faulty}"
        raise refuse("engine.channels_last", allowed, word)


def lay_out(federation: Federation) -> None:
    """Put the federation's images channels-last, in place: nobody is left holding the pixels twice."""
    parts: tuple[Shard | Rows, ...] = (federation.train, federation.val, federation.test)
    inputs = [part.x for part in (*parts, federation.server_val, federation.server_test)]
    for x in [*inputs, *([] if federation.proxy is None else [federation.proxy])]:
        if x.dim() == 4:
            x.data = x.contiguous(memory_format=torch.channels_last)


def gather(x: Tensor, rows: Tensor) -> Tensor:
    """Return x[rows] in the layout of x: `index_select` alone would give the default one back."""
    if x.dim() == 4 and x.stride(1) == 1:
        return x.permute(0, 2, 3, 1).index_select(0, rows).permute(0, 3, 1, 2)
    return x.index_select(0, rows)
