"""A model is a vector: trainable parameters are views into one contiguous tensor `w`, their gradients into `g`.

Broadcast is one copy, an update one subtraction, aggregation linear algebra. Float buffers and frozen parameters are a
second vector, averaged by samples whatever the aggregator does; integer buffers a third, of which the maximum is taken.
"""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@dataclass(frozen=True)
class Block:
    """One tensor of the network inside a flat vector. channels_last: images' layout, the channel varies fastest."""

    name: str
    shape: tuple[int, ...]
    offset: int
    channels_last: bool = False

    @property
    def size(self) -> int:
        return int(torch.Size(self.shape).numel())

    def of(self, vector: Tensor) -> Tensor:
        """The block as a view of `vector`, in the network's shape whatever the memory layout."""
        part = vector[self.offset : self.offset + self.size]
        if not self.channels_last:
            return part.view(self.shape)
        outputs, inputs, height, width = self.shape
        return part.view(outputs, height, width, inputs).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Layout:
    """Where each tensor lies: parameters in `w`, float buffers and frozen parameters in `buffers`, the rest."""

    parameters: tuple[Block, ...]
    buffers: tuple[Block, ...]
    counters: tuple[Block, ...]

    @classmethod
    def of(cls, network: nn.Module, channels_last: bool = False) -> "Layout":
        """Lay the tensors of a network out."""
        named, buffers = list(network.named_parameters()), list(network.named_buffers())
        frozen = [(name, p) for name, p in named if not p.requires_grad]
        floats = [(name, b) for name, b in buffers if b.is_floating_point()]
        return cls(
            _blocks([(name, p) for name, p in named if p.requires_grad], channels_last),
            _blocks([*frozen, *floats]),
            _blocks([(name, b) for name, b in buffers if not b.is_floating_point()]),
        )

    @property
    def n_params(self) -> int:
        return sum(block.size for block in self.parameters)

    @property
    def n_buffers(self) -> int:
        return sum(block.size for block in self.buffers)

    def batch_norm(self) -> tuple[Int64[Tensor, "s"], Int64[Tensor, "s"]]:
        """Positions in `buffers` of the running means and, aligned with them, of the running variances."""
        at = {block.name: block for block in self.buffers}
        means: list[int] = []
        variances: list[int] = []
        for name, block in at.items():
            partner = at.get(name.removesuffix("running_mean") + "running_var")
            if name.endswith("running_mean") and partner is not None:
                means += range(block.offset, block.offset + block.size)
                variances += range(partner.offset, partner.offset + partner.size)
        return torch.tensor(means, dtype=torch.int64), torch.tensor(variances, dtype=torch.int64)


def _blocks(tensors: list[tuple[str, Tensor]], channels_last: bool = False) -> tuple[Block, ...]:
    blocks, offset = [], 0
    for name, tensor in tensors:
        blocks.append(Block(name, tuple(tensor.shape), offset, channels_last and tensor.dim() == 4))
        offset += tensor.numel()
    return tuple(blocks)


class FlatModel:
    """A network whose tensors are views into `w`, `buffers` and `counters`; `g` holds its gradients.

    Made after the network stands on its device. Loading a state_dict into the network writes through the views.
    """

    w: Float[Tensor, "p"]
    g: Float[Tensor, "p"]
    buffers: Float[Tensor, "b"]
    counters: Int64[Tensor, "i"]

    def __init__(self, network: nn.Module, channels_last: bool = False, bf16: bool = False) -> None:
        self.network, self.bf16 = network, bf16
        self.layout = Layout.of(network, channels_last)
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.tensors: list[Tensor] = list(self.parameters)
        like = self.parameters[0]
        self.w = torch.empty(self.layout.n_params, dtype=like.dtype, device=like.device)
        self.g = torch.zeros_like(self.w)
        self.buffers = torch.empty(self.layout.n_buffers, dtype=like.dtype, device=like.device)
        self.counters = torch.empty(sum(b.size for b in self.layout.counters), dtype=torch.int64, device=like.device)
        for vector, blocks in (
            (self.w, self.layout.parameters),
            (self.buffers, self.layout.buffers),
            (self.counters, self.layout.counters),
        ):
            self._attach(vector, blocks)
        self.has_batch_norm = has_batch_norm(network)
        self.has_recurrence = has_recurrence(network)
        self.has_dropout = any(_drops(m) for m in network.modules())

    def _attach(self, vector: Tensor, blocks: tuple[Block, ...]) -> None:
        parameters = dict(self.network.named_parameters())
        for block in blocks:
            view = block.of(vector)
            if block.name in parameters:
                parameter = parameters[block.name]
                view.copy_(parameter.data)
                parameter.data = view
                if parameter.requires_grad:
                    parameter.grad = block.of(self.g)
            else:
                path, _, leaf = block.name.rpartition(".")
                module = self.network.get_submodule(path)
                view.copy_(module._buffers[leaf])  # type: ignore[arg-type]
                module._buffers[leaf] = view

    def logits(self, x: Tensor) -> Tensor:
        """The network's output, float32; with `bf16` its matrix products and convolutions are in bfloat16."""
        if not self.bf16:
            out: Tensor = self.network(x)
            return out
        with torch.autocast(x.device.type, torch.bfloat16):
            out = self.network(x)
        return out.float()

    def load(self, other: "FlatModel") -> None:
        """Become a copy of `other`: the broadcast."""
        self.w.copy_(other.w)
        if len(self.buffers):
            self.buffers.copy_(other.buffers)
        if len(self.counters):
            self.counters.copy_(other.counters)


def _drops(module: nn.Module) -> bool:
    """Whether it is a module of torch's that drops out; layers may do so within."""
    within = isinstance(module, nn.RNNBase | nn.MultiheadAttention) and module.dropout > 0
    return within or isinstance(module, nn.modules.dropout._DropoutNd)


def norms(network: nn.Module) -> list[nn.modules.batchnorm._BatchNorm]:
    """Its layers that norm by their batch."""
    return [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]


def has_batch_norm(network: nn.Module) -> bool:
    """Whether a layer norms by its batch, so that samples change what others in their batch come to."""
    return bool(norms(network))


def keeps_statistics(network: nn.Module) -> bool:
    """Whether statistics of batches are among its buffers, for later batches to be normed by."""
    return any(norm.running_mean is not None for norm in norms(network))


@torch.no_grad()
def norms_one(network: nn.Module, x: Tensor) -> bool:
    """Whether its batch norms can norm the single sample x, [1, ...]: they need two numbers of a channel."""
    if not norms(network):
        return True
    tried = copy.deepcopy(network).eval()  # whose statistics may change; dropout is off
    for norm in norms(tried):
        norm.train()
    try:
        tried(x)
    except ValueError:
        return False
    return True


def has_recurrence(network: nn.Module) -> bool:
    """Whether it has recurrent layers, which are one operation for all steps of a sequence."""
    return any(isinstance(m, nn.RNNBase) for m in network.modules())
