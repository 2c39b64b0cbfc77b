"""The number of samples of a forward pass without training, which limits its memory."""

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

MAX_INPUT_BYTES = 2**26  # limit of the inputs of one forward pass
MAX_LAYER_BYTES = 2**29  # limit of the widest layer's output
MIN_SAMPLES_AT_ONCE = 256  # samples, whatever memory they take

# measured once for each network and shape of a sample
_widest_output_by_network: "WeakKeyDictionary[nn.Module, dict[torch.Size, int]]" = WeakKeyDictionary()


def find_batch_size(network: nn.Module, x: Tensor) -> int:
    """Return the number of samples of a forward pass that fits in memory, at least `MIN_SAMPLES_AT_ONCE`.

    The widest output of the network is measured once for each shape, by a forward pass of one sample in eval mode.

    Args:
        network: the network.
        x: inputs of all samples, [n, ...], of which the first is used to measure outputs.
    """
    widest_output_by_shape, sample_shape = _widest_output_by_network.setdefault(network, {}), x.shape[1:]
    if len(x) and sample_shape not in widest_output_by_shape:
        widest_output_by_shape[sample_shape] = _measure_widest_output(network, x[:1])
    max_samples_by_inputs = MAX_INPUT_BYTES // (4 * max(1, sample_shape.numel()))
    max_samples_by_outputs = MAX_LAYER_BYTES // (4 * widest_output_by_shape.get(sample_shape, 1))
    return max(MIN_SAMPLES_AT_ONCE, min(max_samples_by_inputs, max_samples_by_outputs))


@torch.no_grad()
def _measure_widest_output(network: nn.Module, sample: Tensor) -> int:
    """Return the size of the largest output of any module of `network` for one `sample`, [1, ...], in numbers."""
    output_sizes = [1]

    def record_output_size(_module: nn.Module, _inputs: object, output: object) -> None:
        first_output = output[0] if isinstance(output, tuple) else output  # a recurrent layer returns its states, too
        if isinstance(first_output, Tensor):
            output_sizes.append(first_output.numel())

    hook_handles = [module.register_forward_hook(record_output_size) for module in network.modules()]
    was_in_training_mode = network.training
    try:
        network.eval()(sample)
    finally:
        network.train(was_in_training_mode)
        for hook_handle in hook_handles:
            hook_handle.remove()
    return max(output_sizes)
