"""Hand-written gradients for networks that end in Linear and ReLU: the step goes straight into the weights.

    h_0 = front(x),   h_l = relu(W_l h_{l-1} + b_l),   logits = W_L h_{L-1} + b_L
    delta_L = dL/dlogits,   dW_l = delta_l' h_{l-1},   db_l = sum delta_l,   delta_{l-1} = (delta_l W_l) * [h_{l-1} > 0]

For cross-entropy dL/dlogits is (softmax - onehot) / batch, where the step's length contains the division. For any other
objective autograd differentiates its operations on the logits. The layers before the first Linear of the chain, such as
convolutions, are the front; autograd differentiates it from delta_0 = delta_1 W_1. Dense layers have most of such a
network's weights, and time is saved because their gradients are never written to memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.data.pixels import Conversion, PixelScale
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction
from fedcohort.objective.base import Objective
from fedcohort.training.step import ParameterStep

Piece = tuple[int, int]


@dataclass(frozen=True)
class Layer:
    """A layer as views into the flat model: weight [out, in], its transpose, bias [out], and the gradients of both."""

    weight: Tensor
    transposed_weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor


@dataclass(frozen=True)
class ChainedNetwork:
    """A network that ends in a chain of Linear and ReLU layers.

    Attributes:
        front: layers before the chain, which end in a Flatten; None without any other than a Flatten.
        tensors: parameters of the front; their `grad` are views into the flat model's gradient.
        layers: layers of the chain, at least one.
    """

    front: nn.Sequential | None
    tensors: list[Tensor]
    layers: list[Layer]

    @property
    def is_linear(self) -> bool:
        """Whether the network is a single Linear layer."""
        return self.front is None and len(self.layers) == 1


def find_chain(model: FlatModel, pixels: PixelScale | None = None) -> ChainedNetwork | None:
    """Return the chain of a network that is one, or ends in one after a Flatten; None for other networks.

    Subclasses of Sequential and layers with hooks are excluded because they may compute anything.

    Args:
        model: the flat model of the network.
        pixels: scale of the inputs if they are bytes; the front then converts them, like the network.
    """
    modules = list(model.network) if type(model.network) is nn.Sequential else [model.network]
    flattens = [i for i, m in enumerate(modules) if type(m) is nn.Flatten and (m.start_dim, m.end_dim) == (1, -1)]
    start = flattens[-1] + 1 if flattens else 0
    linear, between = modules[start::2], modules[start + 1 :: 2]
    is_chain = (
        len(linear) == len(between) + 1
        and all(type(m) is nn.Linear and m.bias is not None for m in linear)
        and all(type(m) is nn.ReLU for m in between)
        and all(p.requires_grad for p in model.network.parameters())
        and not any(is_hooked(m) for m in (model.network, *modules[start:]))
    )
    if not is_chain:
        return None
    front = nn.Sequential(*modules[:start]) if start > 1 else None
    if pixels is not None:
        if front is None:
            return None
        pixels.attach(front)
    tensors: list[Tensor] = [] if front is None else list(front.parameters())
    return ChainedNetwork(front, tensors, [layer_of(m) for m in linear if isinstance(m, nn.Linear)])


def is_hooked(module: nn.Module) -> bool:
    """Return whether a module has hooks other than the conversion of bytes, which the front does as well."""
    hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
    return any(not isinstance(hook, Conversion) for hook in hooks)


def layer_of(module: nn.Linear) -> Layer:
    weight, bias = module.weight, module.bias
    if weight.grad is None or bias.grad is None:
        raise ValueError("the layer's parameters have no gradient buffers: the network was not made into a flat model")
    return Layer(weight.data, weight.data.t(), bias.data, weight.grad, bias.grad)


def onehot(labels: Int64[Tensor, "*n"], n_classes: int, dtype: torch.dtype) -> Tensor:
    """Return a row for each label, [*n, n_classes], with 1 at the index of its class and 0 elsewhere."""
    rows = torch.zeros((*labels.shape, n_classes), dtype=dtype, device=labels.device)
    return rows.scatter_(-1, labels[..., None], 1)


def differentiate(
    objective: Objective,
    logits: Float[Tensor, "k b c"],
    y: Int64[Tensor, "k b"],
    reference: Float[Tensor, "k b c"] | None,
    share: Float[Tensor, "k b"],
) -> tuple[Float[Tensor, "k b c"], Float[Tensor, "k b"]]:
    """Return dL/dlogits of k clients' mini-batches, and the samples' cross-entropies.

    Args:
        objective: the clients' objective.
        logits: logits of the mini-batches.
        y: labels.
        reference: probabilities of w_t, None if the objective does not use them.
        share: 1 over the size of the client's mini-batch, 0 for padding.
    """
    labels = y.flatten()
    if objective.plain:
        logp = logits.log_softmax(2)
        gradient = logp.exp().sub_(onehot(y, logits.shape[2], logits.dtype)).mul_(share[:, :, None])
        return gradient, F.nll_loss(logp.flatten(0, 1), labels, reduction="none").view(y.shape)
    with torch.enable_grad():
        leaf = logits.flatten(0, 1).requires_grad_()
        value, plain = objective.per_sample(leaf, labels, None if reference is None else reference.flatten(0, 1))
        means = (value.view_as(share) * share).sum(1)
        (gradient,) = torch.autograd.grad(objective.outer(means).sum(), leaf)
    return gradient.view_as(logits), plain.detach().view(y.shape)


class Chain:
    """Passes over the samples of a chained network; under plain SGD without hooks gradients are never stored."""

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
        self.move = None if client.plain and not corrections else ParameterStep(model, client, lr)
        self.simple = objective.plain
        self.w = model.w

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, reference: Tensor | None, pieces: Sequence[Piece]) -> Tensor:
        """See `step.Pass`."""
        stop, sizes = pieces[-1][1], [b - a for a, b in pieces]
        xs = torch.split(x[:stop].flatten(1) if self.front is None else x[:stop], sizes)
        ones = self.w.new_ones(max(sizes))
        if not self.simple:
            return torch.cat(
                [self._step_by_autograd(h, y[a:b], reference, a, b) for h, (a, b) in zip(xs, pieces, strict=True)]
            )
        labels = y[:stop]
        logp = self.w.new_empty((stop, len(self.layers[-1].bias)))
        targets = onehot(labels, logp.shape[1], logp.dtype)
        for h, out, target, (a, b) in zip(
            xs, torch.split(logp, sizes), torch.split(targets, sizes), pieces, strict=True
        ):
            features, inputs, logits = self._forward(h)
            torch.log_softmax(logits, 1, out=out)
            self._backward(features, inputs, out.exp().sub_(target), 1.0 / (b - a), ones[: b - a])
        return F.nll_loss(logp, labels, reduction="none")

    def _step_by_autograd(self, h: Tensor, y: Tensor, reference: Tensor | None, start: int, stop: int) -> Tensor:
        """Make a step for an objective other than cross-entropy, and return the samples' cross-entropies, [batch]."""
        features, inputs, logits = self._forward(h)
        with torch.enable_grad():
            leaf = logits.requires_grad_()
            value, plain = self.objective.per_sample(leaf, y, None if reference is None else reference[start:stop])
            (delta,) = torch.autograd.grad(self.objective.outer(value.mean()), leaf)
        self._backward(features, inputs, delta, 1.0, self.w.new_ones(stop - start))
        return plain.detach()

    def _forward(self, x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """Return h_0 with the front's graph, the inputs h_0 ... h_{L-1} of the layers, and the logits.

        Their shapes are [batch, inputs of the layer] and [batch, classes].
        """
        if self.front is None:
            features = x
        else:
            with torch.enable_grad():
                features = self.front(x)
        h = features.detach()
        inputs = [h]
        for layer in self.layers[:-1]:
            h = torch.addmm(layer.bias, h, layer.transposed_weight).relu_()
            inputs.append(h)
        return features, inputs, torch.addmm(self.layers[-1].bias, h, self.layers[-1].transposed_weight)

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
                torch.addmm(layer.weight_gradient, transposed, h, beta=0, alpha=scale, out=layer.weight_gradient)
                torch.addmv(layer.bias_gradient, transposed, ones, beta=0, alpha=scale, out=layer.bias_gradient)
        if self.tensors:
            self._move_front(torch.autograd.grad(features, self.tensors, delta), step, scale)
        if self.move is not None:
            self.move(self.corrections)

    def _move_front(self, grads: Sequence[Tensor], step: float, scale: float) -> None:
        """Make the front's step, or store its gradient, times `scale`, for `move`."""
        if self.move is None:
            torch._foreach_add_(self.tensors, list(grads), alpha=step)
            return
        for parameter, grad in zip(self.tensors, grads, strict=True):
            torch.mul(grad, scale, out=parameter.grad)
