"""Hand-written gradients for networks that end in Linear and ReLU: the step goes straight into the weights.

    h_0 = front(x),   h_l = relu(W_l h_{l-1} + b_l),   logits = W_L h_{L-1} + b_L
    delta_L = dL/dlogits,   dW_l = delta_l' h_{l-1},   db_l = sum delta_l,   delta_{l-1} = (delta_l W_l) * [h_{l-1} > 0]

For cross-entropy dL/dlogits is (softmax - onehot) / batch, where the division goes into the step's length; any other
objective's is taken by autograd of its own few operations on the logits. What stands before the first Linear of the
chain, convolutions, is the front: autograd's, which is handed delta_0 = delta_1 W_1. Dense layers hold most of such a
network's weights, and their gradients are as large: not to write them and read them again is what is won.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.data.pixels import Conversion, PixelScale
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction
from fedcohort.objective.base import Objective
from fedcohort.training.step import Move, on_host
from fedcohort.types import Values

Piece = tuple[int, int]
TABLE = 1024  # classes up to which the rows of the identity are kept: more take gigabytes


@dataclass(frozen=True)
class Layer:
    """A layer as views into the flat model: weight [out, in], its transpose, bias [out], and both gradients."""

    weight: Tensor
    across: Tensor
    bias: Tensor
    dw: Tensor
    db: Tensor


@dataclass(frozen=True)
class ChainedNetwork:
    """A network in two.

    Attributes:
        front: what stands before the chain and ends in a Flatten, None where that is all.
        tensors: the front's parameters; their `grad` are views into the flat model's.
        layers: the chain's, at least one.
    """

    front: nn.Sequential | None
    tensors: list[Tensor]
    layers: list[Layer]

    @property
    def is_linear(self) -> bool:
        """Whether it is a single Linear."""
        return self.front is None and len(self.layers) == 1


def find_chain(model: FlatModel, pixels: PixelScale | None = None) -> ChainedNetwork | None:
    """Find the chain that the network is, or ends in after a Flatten; None where there is none.

    A subclass of Sequential, or a layer with a hook, may do with its inputs what it likes, and is none.

    pixels: what bytes become where inputs are bytes; then the front converts them, as the network does.
    """
    modules = list(model.network) if type(model.network) is nn.Sequential else [model.network]
    flattens = [i for i, m in enumerate(modules) if type(m) is nn.Flatten and (m.start_dim, m.end_dim) == (1, -1)]
    at = flattens[-1] + 1 if flattens else 0
    linear, between = modules[at::2], modules[at + 1 :: 2]
    fits = (
        len(linear) == len(between) + 1
        and all(type(m) is nn.Linear and m.bias is not None for m in linear)
        and all(type(m) is nn.ReLU for m in between)
        and all(p.requires_grad for p in model.network.parameters())
        and not any(is_hooked(m) for m in (model.network, *modules[at:]))
    )
    if not fits:
        return None
    front = nn.Sequential(*modules[:at]) if at > 1 else None
    if pixels is not None:
        if front is None:
            return None
        pixels.attach(front)
    tensors: list[Tensor] = [] if front is None else list(front.parameters())
    return ChainedNetwork(front, tensors, [layer_of(m) for m in linear if isinstance(m, nn.Linear)])


def is_hooked(module: nn.Module) -> bool:
    """Whether more than its `forward` happens when it is called; that bytes become numbers is the front's affair."""
    hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
    return any(not isinstance(hook, Conversion) for hook in hooks)


def layer_of(module: nn.Linear) -> Layer:
    weight, bias = module.weight, module.bias
    if weight.grad is None or bias.grad is None:
        raise ValueError("the layer belongs to no flat model")
    return Layer(weight.data, weight.data.t(), bias.data, weight.grad, bias.grad)


def onehot(labels: Int64[Tensor, "*n"], n_classes: int, dtype: torch.dtype) -> Tensor:
    """Return a row for each label, [*n, n_classes], with 1 in the place of its class and 0 elsewhere."""
    if n_classes <= TABLE:
        return _identity(n_classes, dtype, labels.device)[labels]
    rows = torch.zeros((*labels.shape, n_classes), dtype=dtype, device=labels.device)
    return rows.scatter_(-1, labels[..., None], 1)


@lru_cache(maxsize=4)
def _identity(n_classes: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(n_classes, dtype=dtype, device=device)


class Chain:
    """Passes over such a network's samples; under plain SGD without hooks the gradient is never stored."""

    def __init__(
        self,
        model: FlatModel,
        network: ChainedNetwork,
        objective: Objective,
        client: Client,
        lr: float,
        corrections: Sequence[Correction],
    ) -> None:
        self.front, self.tensors, self.layers = network.front, network.tensors, network.layers
        self.objective, self.corrections, self.lr = objective, corrections, lr
        self.move = None if client.plain and not corrections else Move(model, client, lr)
        self.simple = objective.plain
        self.w = model.w

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, reference: Tensor | None, pieces: Sequence[Piece]) -> Values:
        """See `step.Pass`."""
        stop, sizes = pieces[-1][1], [b - a for a, b in pieces]
        xs = torch.split(x[:stop].flatten(1) if self.front is None else x[:stop], sizes)
        ones = self.w.new_ones(max(sizes))
        if not self.simple:
            return on_host([self._other(h, y[a:b], reference, a, b) for h, (a, b) in zip(xs, pieces, strict=True)])
        labels = y[:stop]
        logp = self.w.new_empty((stop, len(self.layers[-1].bias)))
        targets = onehot(labels, logp.shape[1], logp.dtype)
        for h, out, target, (a, b) in zip(
            xs, torch.split(logp, sizes), torch.split(targets, sizes), pieces, strict=True
        ):
            features, inputs, logits = self._forward(h)
            torch.log_softmax(logits, 1, out=out)
            self._backward(features, inputs, out.exp().sub_(target), 1.0 / (b - a), ones[: b - a])
        return on_host([F.nll_loss(logp, labels, reduction="none")])

    def _other(self, h: Tensor, y: Tensor, reference: Tensor | None, start: int, stop: int) -> Tensor:
        features, inputs, logits = self._forward(h)
        with torch.enable_grad():
            leaf = logits.requires_grad_()
            value, plain = self.objective.per_sample(leaf, y, None if reference is None else reference[start:stop])
            (delta,) = torch.autograd.grad(self.objective.outer(value.mean()), leaf)
        self._backward(features, inputs, delta, 1.0, self.w.new_ones(stop - start))
        return plain.detach()

    def _forward(self, x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """Return h_0 with the front's graph, the inputs h_0 ... h_{L-1} of the layers, and the logits.

        They are [batch, in of the layer] and [batch, classes].
        """
        if self.front is None:
            features = x
        else:
            with torch.enable_grad():
                features = self.front(x)
        h = features.detach()
        inputs = [h]
        for layer in self.layers[:-1]:
            h = torch.addmm(layer.bias, h, layer.across).relu_()
            inputs.append(h)
        return features, inputs, torch.addmm(self.layers[-1].bias, h, self.layers[-1].across)

    def _backward(self, features: Tensor, inputs: list[Tensor], delta: Tensor, scale: float, ones: Tensor) -> None:
        """Make the step for dL/dlogits = scale * delta."""
        step = -self.lr * scale
        for i in range(len(inputs) - 1, -1, -1):
            layer, h, transposed = self.layers[i], inputs[i], delta.t()
            if i or self.tensors:
                delta = delta @ layer.weight
            if i:
                delta = torch.ops.aten.threshold_backward(delta, h, 0)
            if self.move is None:
                layer.weight.addmm_(transposed, h, alpha=step)
                layer.bias.addmv_(transposed, ones, alpha=step)
            else:
                torch.addmm(layer.dw, transposed, h, beta=0, alpha=scale, out=layer.dw)
                torch.addmv(layer.db, transposed, ones, beta=0, alpha=scale, out=layer.db)
        if self.tensors:
            self._move_front(torch.autograd.grad(features, self.tensors, delta), step, scale)
        if self.move is not None:
            self.move(self.corrections)

    def _move_front(self, grads: Sequence[Tensor], step: float, scale: float) -> None:
        """Make the front's step, or leave its gradient, times `scale`, where `move` finds it."""
        if self.move is None:
            torch._foreach_add_(self.tensors, list(grads), alpha=step)
            return
        for parameter, grad in zip(self.tensors, grads, strict=True):
            torch.mul(grad, scale, out=parameter.grad)
