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
from fedcohort.data.pixels import PixelScale
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction
from fedcohort.objective.base import Objective
from fedcohort.training.step import ParameterStep

BatchRange = tuple[int, int]


@dataclass(frozen=True)
class DenseLayer:
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
    layers: list[DenseLayer]

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
    flatten_positions = [
        i for i, m in enumerate(modules) if type(m) is nn.Flatten and (m.start_dim, m.end_dim) == (1, -1)
    ]
    first_linear = flatten_positions[-1] + 1 if flatten_positions else 0
    linear_modules, layers_between = modules[first_linear::2], modules[first_linear + 1 :: 2]
    is_chain = (
        len(linear_modules) == len(layers_between) + 1
        and all(type(m) is nn.Linear and m.bias is not None for m in linear_modules)
        and all(type(m) is nn.ReLU for m in layers_between)
        and all(p.requires_grad for p in model.network.parameters())
        and not any(has_other_hooks(m) for m in (model.network, *modules[first_linear:]))
    )
    if not is_chain:
        return None
    front = nn.Sequential(*modules[:first_linear]) if first_linear > 1 else None
    if pixels is not None:
        if front is None:
            return None
        pixels.attach(front)
    tensors: list[Tensor] = [] if front is None else list(front.parameters())
    return ChainedNetwork(front, tensors, [view_dense_layer(m) for m in linear_modules if isinstance(m, nn.Linear)])


def has_other_hooks(module: nn.Module) -> bool:
    """Return whether a module has hooks other than the conversion of bytes, which the front does as well."""
    forward_hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
    return any(not isinstance(hook, PixelScale) for hook in forward_hooks)


def view_dense_layer(module: nn.Linear) -> DenseLayer:
    weight, bias = module.weight, module.bias
    if weight.grad is None or bias.grad is None:
        raise ValueError("the layer's parameters have no gradient buffers: the network was not made into a flat model")
    return DenseLayer(weight.data, weight.data.t(), bias.data, weight.grad, bias.grad)


def one_hot(labels: Int64[Tensor, "*n"], n_classes: int, dtype: torch.dtype) -> Tensor:
    """Return a row for each label, [*n, n_classes], with 1 at the index of its class and 0 elsewhere."""
    one_hot_rows = torch.zeros((*labels.shape, n_classes), dtype=dtype, device=labels.device)
    return one_hot_rows.scatter_(-1, labels[..., None], 1)


def differentiate_logits(
    objective: Objective,
    logits: Float[Tensor, "k b c"],
    labels_by_client: Int64[Tensor, "k b"],
    reference_probs: Float[Tensor, "k b c"] | None,
    sample_shares: Float[Tensor, "k b"],
) -> tuple[Float[Tensor, "k b c"], Float[Tensor, "k b"]]:
    """Return dL/dlogits of k clients' mini-batches, and the samples' cross-entropies.

    Args:
        objective: the clients' objective.
        logits: logits of the mini-batches.
        labels_by_client: labels.
        reference_probs: probabilities of w_t, None if the objective does not use them.
        sample_shares: 1 over the size of the client's mini-batch, 0 for padding.
    """
    labels = labels_by_client.flatten()
    if objective.plain:
        log_probs = logits.log_softmax(2)
        gradient = (
            log_probs.exp()
            .sub_(one_hot(labels_by_client, logits.shape[2], logits.dtype))
            .mul_(sample_shares[:, :, None])
        )
        return gradient, F.nll_loss(log_probs.flatten(0, 1), labels, reduction="none").view(labels_by_client.shape)
    with torch.enable_grad():
        flat_logits = logits.flatten(0, 1).requires_grad_()
        sample_objectives, cross_entropies = objective.per_sample(
            flat_logits, labels, None if reference_probs is None else reference_probs.flatten(0, 1)
        )
        client_means = (sample_objectives.view_as(sample_shares) * sample_shares).sum(1)
        (gradient,) = torch.autograd.grad(objective.transform_mean(client_means).sum(), flat_logits)
    return gradient.view_as(logits), cross_entropies.detach().view(labels_by_client.shape)


class ChainPass:
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
        self.apply_step = None if client.plain and not corrections else ParameterStep(model, client, lr)
        self.is_cross_entropy = objective.plain
        self.w = model.w

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, reference: Tensor | None, batch_ranges: Sequence[BatchRange]) -> Tensor:
        """Train one SGD step per mini-batch of a pass; return the samples' losses before each step."""
        stop, sizes = batch_ranges[-1][1], [end - start for start, end in batch_ranges]
        input_batches = torch.split(x[:stop].flatten(1) if self.front is None else x[:stop], sizes)
        ones_column = self.w.new_ones(max(sizes))
        if not self.is_cross_entropy:
            return torch.cat(
                [
                    self._step_by_autograd(h, y[start:end], reference, start, end)
                    for h, (start, end) in zip(input_batches, batch_ranges, strict=True)
                ]
            )
        labels = y[:stop]
        log_probs = self.w.new_empty((stop, len(self.layers[-1].bias)))
        one_hot_labels = one_hot(labels, log_probs.shape[1], log_probs.dtype)
        for h, out, target, (start, end) in zip(
            input_batches, torch.split(log_probs, sizes), torch.split(one_hot_labels, sizes), batch_ranges, strict=True
        ):
            features, inputs, logits = self._forward(h)
            torch.log_softmax(logits, 1, out=out)
            self._backward(features, inputs, out.exp().sub_(target), 1.0 / (end - start), ones_column[: end - start])
        return F.nll_loss(log_probs, labels, reduction="none")

    def _step_by_autograd(self, h: Tensor, y: Tensor, reference: Tensor | None, start: int, stop: int) -> Tensor:
        """Make a step for an objective other than cross-entropy, and return the samples' cross-entropies, [batch]."""
        features, inputs, logits = self._forward(h)
        with torch.enable_grad():
            leaf = logits.requires_grad_()
            value, losses = self.objective.per_sample(leaf, y, None if reference is None else reference[start:stop])
            (gradient,) = torch.autograd.grad(self.objective.transform_mean(value.mean()), leaf)
        self._backward(features, inputs, gradient, 1.0, self.w.new_ones(stop - start))
        return losses.detach()

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

    def _backward(
        self, features: Tensor, inputs: list[Tensor], logit_gradient: Tensor, factor: float, ones_column: Tensor
    ) -> None:
        """Make the step for dL/dlogits = scale * delta."""
        scaled_rate = -self.lr * factor
        for i in range(len(inputs) - 1, -1, -1):
            layer, h, gradient_t = self.layers[i], inputs[i], logit_gradient.t()
            if i or self.tensors:
                logit_gradient = logit_gradient @ layer.weight
            if i:
                logit_gradient = torch.ops.aten.threshold_backward(logit_gradient, h, 0)
            if self.apply_step is None:
                layer.weight.addmm_(gradient_t, h, alpha=scaled_rate)
                layer.bias.addmv_(gradient_t, ones_column, alpha=scaled_rate)
            else:
                torch.addmm(layer.weight_gradient, gradient_t, h, beta=0, alpha=factor, out=layer.weight_gradient)
                torch.addmv(layer.bias_gradient, gradient_t, ones_column, beta=0, alpha=factor, out=layer.bias_gradient)
        if self.tensors:
            self._move_front(torch.autograd.grad(features, self.tensors, logit_gradient), scaled_rate, factor)
        if self.apply_step is not None:
            self.apply_step(self.corrections)

    def _move_front(self, gradients: Sequence[Tensor], step_size: float, factor: float) -> None:
        """Make the front's step, or store its gradient, times `factor`, for `move`."""
        if self.apply_step is None:
            torch._foreach_add_(self.tensors, list(gradients), alpha=step_size)
            return
        for parameter, gradient in zip(self.tensors, gradients, strict=True):
            torch.mul(gradient, factor, out=parameter.grad)
