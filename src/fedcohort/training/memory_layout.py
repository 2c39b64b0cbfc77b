"""The layout of images in memory.

With channels last, convolutions on CPUs take 10 to 20 % less time. Shapes stay [N, C, H, W]; only strides differ.
"""

import torch
from torch import Tensor, nn

from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.ranges import range_error

MIN_SAFE_CHANNELS = 8  # input channels from which on a strided 1x1 convolution is safe


def uses_channels_last(layout_option: str, network: nn.Module) -> bool:
    """Return whether images are in the channels-last layout.

    Args:
        layout_option: option `engine.channels_last`; auto means yes for a network with convolutions that torch trains
            without a fault.
        network: the network that is trained.
    """
    if layout_option == "auto":
        return any(isinstance(module, nn.Conv2d) for module in network.modules()) and find_faulty_layer(network) is None
    return layout_option == "yes"


def find_faulty_layer(network: nn.Module) -> str | None:
    """Return a description of the first convolution in `network` that torch can't train channels-last on CPUs.

    None if there is none. torch 2.13 writes out of bounds in a 1x1 convolution with a stride and few input channels
    (output channels if it is transposed). With malloc's checks it crashed at 2 to 6 channels, strides 2 to 4 and any
    number of output channels. It did not crash with 1 or 7 to 17 channels, kernels of 2 to 5, groups, or in the default
    layout.
    """
    for layer_name, module in network.named_modules():
        if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d) or module.groups > 1:
            continue
        n_channels = module.in_channels if isinstance(module, nn.Conv2d) else module.out_channels
        if module.kernel_size == (1, 1) and max(module.stride) > 1 and n_channels < MIN_SAFE_CHANNELS:
            return f"{layer_name}, a 1x1 convolution of stride {max(module.stride)} over {n_channels} channels"
    return None


def check_channels_last(layout_option: str, network: nn.Module, accelerator: str) -> None:
    """Raise `OptionError` if the channels-last layout would make torch write out of bounds.

    Args:
        layout_option: option `engine.channels_last`.
        network: the network that is trained.
        accelerator: kind of device, as "cpu".
    """
    if layout_option == "yes" and accelerator == "cpu" and (faulty_layer := find_faulty_layer(network)) is not None:
        raise range_error(
            "engine.channels_last",
            f"auto or no for this network, as torch writes out of bounds on CPUs in {faulty_layer}",
            layout_option,
        )


def to_channels_last(federation: Federation) -> None:
    """Convert the images of `federation` to channels last in place, so that memory does not hold them twice."""
    data_splits: tuple[Shard | ServerSamples, ...] = (federation.train, federation.val, federation.test)
    inputs = [data_split.x for data_split in (*data_splits, federation.server_val, federation.server_test)]
    for x in [*inputs, *([] if federation.proxy is None else [federation.proxy])]:
        if x.dim() == 4:
            x.data = x.contiguous(memory_format=torch.channels_last)


def gather_rows(inputs: Tensor, row_positions: Tensor) -> Tensor:
    """Return `inputs[row_positions]` in the layout of `inputs`; `index_select` would return the default layout."""
    if inputs.dim() == 4 and inputs.stride(1) == 1:
        return inputs.permute(0, 2, 3, 1).index_select(0, row_positions).permute(0, 3, 1, 2)
    return inputs.index_select(0, row_positions)
