"""Flat models: the trainable parameters of a network are views into one contiguous tensor `w`, the gradients into `g`.

A broadcast is one copy, an update one subtraction, aggregation linear algebra. Float buffers and frozen parameters form
a second vector, which is averaged over samples for every aggregator. Integer buffers form a third, of which the
elementwise maximum is taken.
"""

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@dataclass(frozen=True)
class TensorBlock:
    """The position of one tensor of a network in a flat vector.

    Attributes:
        name: name of the tensor in the network.
        shape: shape of the tensor.
        offset: position of the tensor's first number in the vector.
        channels_last: whether the channel varies fastest in the vector, as in torch's channels_last format.
    """

    name: str
    shape: tuple[int, ...]
    offset: int
    channels_last: bool = False

    @property
    def size(self) -> int:
        return int(torch.Size(self.shape).numel())

    def make_view(self, flat_vector: Tensor) -> Tensor:
        """Return the tensor as a view of `flat_vector`, in the tensor's shape for either memory format."""
        flat_values = flat_vector[self.offset : self.offset + self.size]
        if not self.channels_last:
            return flat_values.view(self.shape)
        n_outputs, n_inputs, height, width = self.shape
        return flat_values.view(n_outputs, height, width, n_inputs).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Layout:
    """The positions of all tensors of a network in three flat vectors.

    Attributes:
        parameters: trainable parameters, in the vector `w` of a `FlatModel`.
        buffers: float buffers and frozen parameters, in its vector `buffers`.
        counters: integer buffers, in its vector `counters`.
    """

    parameters: tuple[TensorBlock, ...]
    buffers: tuple[TensorBlock, ...]
    counters: tuple[TensorBlock, ...]

    @classmethod
    def from_network(cls, network: nn.Module, channels_last: bool = False) -> "Layout":
        """Return the layout of `network`; `channels_last` stores 4-d trainable parameters with the channel last."""
        parameters, buffers = list(network.named_parameters()), list(network.named_buffers())
        trainable_parameters = [(name, p) for name, p in parameters if p.requires_grad]
        float_tensors: list[tuple[str, Tensor]] = [(name, p) for name, p in parameters if not p.requires_grad]
        float_tensors += [(name, b) for name, b in buffers if b.is_floating_point()]
        counters = [(name, b) for name, b in buffers if not b.is_floating_point()]
        trainable_blocks = _assign_offsets(trainable_parameters, channels_last)
        return cls(trainable_blocks, _assign_offsets(float_tensors), _assign_offsets(counters))

    @property
    def n_params(self) -> int:
        return sum(block.size for block in self.parameters)

    @property
    def n_buffers(self) -> int:
        return sum(block.size for block in self.buffers)

    def repeat_for_parameters(self, tensor_values: Tensor) -> Tensor:
        """Return a value for each trainable parameter, [P], from one for each tensor of them, `tensor_values`."""
        tensor_sizes = torch.tensor([block.size for block in self.parameters], device=tensor_values.device)
        return tensor_values.repeat_interleave(tensor_sizes)

    def batch_norm_positions(self) -> tuple[Int64[Tensor, "s"], Int64[Tensor, "s"]]:
        """Return the positions in `buffers` of all running means and, aligned with them, of the variances, [s] each."""
        blocks_by_name = {buffer_block.name: buffer_block for buffer_block in self.buffers}
        mean_and_variance_positions: tuple[list[int], list[int]] = ([], [])  # of means and of variances
        for buffer_name, buffer_block in blocks_by_name.items():
            variance_block = blocks_by_name.get(buffer_name.removesuffix("running_mean") + "running_var")
            if buffer_name.endswith("running_mean") and variance_block is not None:
                for positions, tensor_block in zip(
                    mean_and_variance_positions, (buffer_block, variance_block), strict=True
                ):
                    positions += range(tensor_block.offset, tensor_block.offset + tensor_block.size)
        return torch.tensor(mean_and_variance_positions[0], dtype=torch.int64), torch.tensor(
            mean_and_variance_positions[1], dtype=torch.int64
        )


def _assign_offsets(
    named_tensors: Sequence[tuple[str, Tensor]], channels_last: bool = False
) -> tuple[TensorBlock, ...]:
    tensor_blocks, next_offset = [], 0
    for tensor_name, tensor in named_tensors:
        tensor_blocks.append(
            TensorBlock(tensor_name, tuple(tensor.shape), next_offset, channels_last and tensor.dim() == 4)
        )
        next_offset += tensor.numel()
    return tuple(tensor_blocks)


class FlatModel:
    """A network whose tensors are views into flat vectors.

    Create it once the network is on its device. Loading a state_dict into the network writes through the views.

    Attributes:
        w: trainable parameters, [P].
        g: gradients of `w`, [P].
        buffers: float buffers and frozen parameters, [B].
        counters: integer buffers, int64 [I].
    """

    w: Float[Tensor, "p"]
    g: Float[Tensor, "p"]
    buffers: Float[Tensor, "b"]
    counters: Int64[Tensor, "i"]

    def __init__(self, network: nn.Module, channels_last: bool = False, uses_bf16: bool = False) -> None:
        self.network, self.bf16 = network, uses_bf16
        self.layout = Layout.from_network(network, channels_last)
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.tensors: list[Tensor] = list(self.parameters)
        first_parameter = self.parameters[0]
        self.w = torch.empty(self.layout.n_params, dtype=first_parameter.dtype, device=first_parameter.device)
        self.g = torch.zeros_like(self.w)
        self.buffers = torch.empty(self.layout.n_buffers, dtype=first_parameter.dtype, device=first_parameter.device)
        n_counters = sum(block.size for block in self.layout.counters)
        self.counters = torch.empty(n_counters, dtype=torch.int64, device=first_parameter.device)
        self._attach_views(self.w, self.layout.parameters)
        self._attach_views(self.buffers, self.layout.buffers)
        self._attach_views(self.counters, self.layout.counters)
        self.has_batch_norm = has_batch_norm(network)
        self.has_recurrence = has_recurrence(network)
        self.has_dropout = any(_applies_dropout(m) for m in network.modules())

    def _attach_views(self, flat_vector: Tensor, tensor_blocks: tuple[TensorBlock, ...]) -> None:
        parameters_by_name = dict(self.network.named_parameters())
        for tensor_block in tensor_blocks:
            tensor_view = tensor_block.make_view(flat_vector)
            if tensor_block.name in parameters_by_name:
                parameter = parameters_by_name[tensor_block.name]
                tensor_view.copy_(parameter.data)
                parameter.data = tensor_view
                if parameter.requires_grad:
                    parameter.grad = tensor_block.make_view(self.g)
            else:
                module_path, _, buffer_name = tensor_block.name.rpartition(".")
                owner_module = self.network.get_submodule(module_path)
                tensor_view.copy_(owner_module._buffers[buffer_name])  # type: ignore[arg-type]
                owner_module._buffers[buffer_name] = tensor_view

    def logits(self, x: Tensor) -> Tensor:
        """Return the network's output for inputs x, [b, ...].

        With `bf16`, matrix products are computed in bfloat16, and the output is converted to float32.
        """
        with torch.autocast(x.device.type, torch.bfloat16) if self.bf16 else nullcontext():
            network_output: Tensor = self.network(x)
        return network_output.float() if self.bf16 else network_output

    def copy_from(self, source_model: "FlatModel") -> None:
        """Copy parameters and buffers of `source_model`, a model of the same network, into this model."""
        self.w.copy_(source_model.w)
        self.buffers.copy_(source_model.buffers)
        self.counters.copy_(source_model.counters)


def _applies_dropout(module: nn.Module) -> bool:
    """Return whether `module`, of torch, applies dropout, as a layer or between the layers inside it."""
    has_inner_dropout = isinstance(module, nn.RNNBase | nn.MultiheadAttention) and module.dropout > 0
    return has_inner_dropout or isinstance(module, nn.modules.dropout._DropoutNd)


def list_batch_norms(network: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    """Return the batch norm layers of `network`."""
    return [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]


def has_batch_norm(network: nn.Module) -> bool:
    """Return whether `network` has batch norm, so that its output for a sample depends on the sample's batch."""
    return bool(list_batch_norms(network))


def has_batch_statistics(network: nn.Module) -> bool:
    """Return whether `network` has running batch statistics among its buffers."""
    return any(batch_norm.running_mean is not None for batch_norm in list_batch_norms(network))


@torch.no_grad()
def can_norm_one_sample(network: nn.Module, x: Tensor) -> bool:
    """Return whether the batch norms of `network` can train on the single sample x, [1, ...].

    Batch norm needs at least two values per channel.
    """
    if not list_batch_norms(network):
        return True
    network_copy = copy.deepcopy(network).eval()  # a copy, as the forward pass changes the statistics; dropout is off
    for batch_norm in list_batch_norms(network_copy):
        batch_norm.train()
    try:
        network_copy(x)
    except ValueError:
        return False
    return True


def has_recurrence(network: nn.Module) -> bool:
    """Return whether `network` has recurrent layers, which are one operation for all steps of a sequence."""
    return any(isinstance(m, nn.RNNBase) for m in network.modules())
