"""Hand-written gradients for networks that end in Linear and ReLU: the step goes straight into the weights.

    h_0 = front(x),   h_l = relu(W_l h_{l-1} + b_l),   logits = W_L h_{L-1} + b_L
    delta_L = dL/dlogits,   dW_l = delta_l' h_{l-1},   db_l = sum delta_l,   delta_{l-1} = (delta_l W_l) * [h_{l-1} > 0]

For cross-entropy dL/dlogits is (softmax - onehot) / batch, where the step's length contains the division. For any other
objective autograd differentiates its operations on the logits. The layers before the first Linear of the chain, such as
convolutions, are the front; autograd differentiates it from delta_0 = delta_1 W_1. Dense layers have most of such a
network's weights, and time is saved because their gradients are never written to memory.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.data.pixels import PixelScale
from fedcohort.flat import FlatModel
from fedcohort.objective.base import Objective


@dataclass(frozen=True)
class DenseLayer:
    """A linear layer whose tensors are views into the flat vectors of the model's parameters and gradients.

    Attributes:
        weight: weights, [out, in].
        transposed_weight: the same weights, [in, out].
        bias: biases, [out].
        weight_gradient: gradient of `weight`, [out, in].
        bias_gradient: gradient of `bias`, [out].
    """

    weight: Tensor
    transposed_weight: Tensor
    bias: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor


@dataclass(frozen=True)
class DenseChainNetwork:
    """A network that ends in a chain of Linear and ReLU layers.

    Attributes:
        front_layers: layers before the chain, which end in a Flatten; None if there are none but a Flatten.
        front_tensors: parameters of `front_layers`; their `grad` are views into the model's flat gradient.
        dense_layers: layers of the chain, at least one.
    """

    front_layers: nn.Sequential | None
    front_tensors: list[Tensor]
    dense_layers: list[DenseLayer]

    @property
    def is_linear(self) -> bool:
        """Whether the network is a single Linear layer, maybe after a Flatten."""
        return self.front_layers is None and len(self.dense_layers) == 1


def find_dense_chain(model: FlatModel, pixel_scale: PixelScale | None = None) -> DenseChainNetwork | None:
    """Return the network as a chain of Linear and ReLU layers, maybe behind a Flatten; None for other networks.

    Subclasses of Sequential and Linear, and chains with hooks, are excluded because they may compute anything. So are
    frozen parameters and layers without a bias.

    Args:
        model: the flat model of the network.
        pixel_scale: scale of inputs that are stored as bytes, which the layers before the chain convert to floats; the
            result is None if there are no such layers. None for float inputs.
    """
    modules = list(model.network) if type(model.network) is nn.Sequential else [model.network]
    flatten_positions = [
        i for i, m in enumerate(modules) if type(m) is nn.Flatten and (m.start_dim, m.end_dim) == (1, -1)
    ]
    first_linear_position = flatten_positions[-1] + 1 if flatten_positions else 0
    linear_modules, relu_layers = modules[first_linear_position::2], modules[first_linear_position + 1 :: 2]
    is_dense_chain = (
        len(linear_modules) == len(relu_layers) + 1
        and all(type(m) is nn.Linear and m.bias is not None for m in linear_modules)
        and all(type(m) is nn.ReLU for m in relu_layers)
        and all(p.requires_grad for p in model.network.parameters())
        and not any(has_user_hooks(m) for m in (model.network, *modules[first_linear_position:]))
    )
    if not is_dense_chain:
        return None
    front_layers = nn.Sequential(*modules[:first_linear_position]) if first_linear_position > 1 else None
    if pixel_scale is not None:
        if front_layers is None:
            return None
        pixel_scale.attach_to_network(front_layers)
    front_tensors: list[Tensor] = [] if front_layers is None else list(front_layers.parameters())
    dense_layers = [view_dense_layer(m) for m in linear_modules if isinstance(m, nn.Linear)]
    return DenseChainNetwork(front_layers, front_tensors, dense_layers)


def has_user_hooks(module: nn.Module) -> bool:
    """Return whether `module` has forward hooks other than the conversion of bytes to floats (`PixelScale`)."""
    forward_hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
    return any(not isinstance(h, PixelScale) for h in forward_hooks)


def view_dense_layer(module: nn.Linear) -> DenseLayer:
    """Return the Linear layer `module` with views of its tensors; raise `ValueError` if it has no gradient buffers."""
    weight, bias = module.weight, module.bias
    if weight.grad is None or bias.grad is None:
        raise ValueError("a Linear layer's parameters have no gradient buffers: make the network a FlatModel first")
    return DenseLayer(weight.data, weight.data.t(), bias.data, weight.grad, bias.grad)


def make_one_hot(labels: Int64[Tensor, "*n"], n_classes: int, dtype: torch.dtype) -> Tensor:
    """Return a row of `dtype` for each of `labels`, [*n, n_classes]: 1 at the index of its class and 0 elsewhere."""
    return torch.zeros((*labels.shape, n_classes), dtype=dtype, device=labels.device).scatter_(-1, labels[..., None], 1)


def differentiate_logits(
    objective: Objective,
    logits: Float[Tensor, "k b c"],
    labels_by_client: Int64[Tensor, "k b"],
    reference_probs: Float[Tensor, "k b c"] | None,
    sample_shares: Float[Tensor, "k b"],
) -> tuple[Float[Tensor, "k b c"], Float[Tensor, "k b"]]:
    """Return the gradient of k clients' losses L on a mini-batch, dL/dlogits, and the samples' cross-entropies in nats.

    Args:
        objective: the clients' objective.
        logits: logits of the mini-batches.
        labels_by_client: labels of the mini-batches.
        reference_probs: class probabilities of the global model w_t; None if the objective does not use them.
        sample_shares: 1 over the size of the client's mini-batch, 0 for padding.
    """
    labels = labels_by_client.flatten()
    if objective.plain:
        log_probs = logits.log_softmax(2)
        one_hot_labels = make_one_hot(labels_by_client, logits.shape[2], logits.dtype)
        gradient = log_probs.exp().sub_(one_hot_labels).mul_(sample_shares[:, :, None])
        return gradient, F.nll_loss(log_probs.flatten(0, 1), labels, reduction="none").view(labels_by_client.shape)
    with torch.enable_grad():
        flat_logits = logits.flatten(0, 1).requires_grad_()
        sample_objectives, cross_entropies = objective.per_sample(
            flat_logits, labels, None if reference_probs is None else reference_probs.flatten(0, 1)
        )
        mean_objectives = (sample_objectives.view_as(sample_shares) * sample_shares).sum(1)
        (gradient,) = torch.autograd.grad(objective.transform_mean(mean_objectives).sum(), flat_logits)
    return gradient.view_as(logits), cross_entropies.detach().view(labels_by_client.shape)
