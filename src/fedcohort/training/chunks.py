"""The number of samples of a forward pass without training, which limits its memory."""

from functools import partial
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

INPUT_BYTES = 2**26  # limit of the inputs of one forward pass
LAYER_BYTES = 2**29  # limit of the widest layer's output
LEAST = 256  # samples, whatever memory they take

_widest: "WeakKeyDictionary[nn.Module, dict[torch.Size, int]]" = WeakKeyDictionary()  # measured once for each network


def count_at_once(network: nn.Module, x: Tensor) -> int:
    """Return the number of samples of a forward pass, at least `LEAST`; x: inputs of the shape of the samples.

    The widest output of the network is measured once for each shape, by a forward pass of one sample in eval mode.
    """
    widest_output_by_shape, shape = _widest.setdefault(network, {}), x.shape[1:]
    if len(x) and shape not in widest_output_by_shape:
        widest_output_by_shape[shape] = _measure(network, x[:1])
    inputs, outputs = (
        INPUT_BYTES // (4 * max(1, shape.numel())),
        LAYER_BYTES // (4 * widest_output_by_shape.get(shape, 1)),
    )
    return max(LEAST, min(inputs, outputs))


@torch.no_grad()
def _measure(network: nn.Module, sample: Tensor) -> int:
    """Return the numbers in the widest output of any module of the network, for one sample."""
    sizes = [1]

    def note(sizes: list[int], module: nn.Module, inputs: object, output: object) -> None:
        first = output[0] if isinstance(output, tuple) else output  # a recurrent layer returns its states, too
        if isinstance(first, Tensor):
            sizes.append(first.numel())

    handles = [module.register_forward_hook(partial(note, sizes)) for module in network.modules()]
    training = network.training
    try:
        network.eval()(sample)
    finally:
        network.train(training)
        for handle in handles:
            handle.remove()
    return max(sizes)
