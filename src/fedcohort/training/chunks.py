"""How many samples go through a network at once where nothing is learned: as many as memory should hold."""

from functools import partial
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

INPUT_BYTES = 2**26  # of one forward pass
LAYER_BYTES = 2**29  # of the widest layer's output
LEAST = 256  # samples, whatever they take

_widest: "WeakKeyDictionary[nn.Module, dict[torch.Size, int]]" = WeakKeyDictionary()  # measured once for each network


def count_at_once(network: nn.Module, x: Tensor) -> int:
    """Return the number of samples of a forward pass, at least `LEAST`; x: inputs like those that are to come.

    The network is asked about one of them once, in eval mode and without a gradient.
    """
    known, shape = _widest.setdefault(network, {}), x.shape[1:]
    if len(x) and shape not in known:
        known[shape] = _measure(network, x[:1])
    inputs, outputs = INPUT_BYTES // (4 * max(1, shape.numel())), LAYER_BYTES // (4 * known.get(shape, 1))
    return max(LEAST, min(inputs, outputs))


@torch.no_grad()
def _measure(network: nn.Module, one: Tensor) -> int:
    """Return the numbers in the widest output of any of its modules, for one sample."""
    sizes = [1]

    def note(sizes: list[int], module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.numel())

    handles = [module.register_forward_hook(partial(note, sizes)) for module in network.modules()]
    training = network.training
    try:
        network.eval()(one)
    finally:
        network.train(training)
        for handle in handles:
            handle.remove()
    return max(sizes)
