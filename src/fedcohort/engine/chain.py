"""Hand-written gradients for chains of Linear and ReLU: no autograd graph, the step goes straight into the weights.

    h_0 = x,   h_l = relu(W_l h_{l-1} + b_l),   logits = W_L h_{L-1} + b_L
    delta_L = dL/dlogits,   dW_l = delta_l' h_{l-1},   db_l = sum delta_l,   delta_{l-1} = (delta_l W_l) * [h_{l-1} > 0]

For cross-entropy dL/dlogits is (softmax - onehot) / batch; any other objective's is taken by autograd of its own few
operations on the logits.
"""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.engine.step import Move
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction
from fedcohort.objective.base import Objective
from fedcohort.objective.ce import CrossEntropy

Layer = tuple[Tensor, Tensor, Tensor, Tensor]  # weight, bias, and the views of their gradients


def layers_of(model: FlatModel) -> list[Layer] | None:
    """The chain's layers, None where the network is no such chain."""
    modules = list(model.network) if isinstance(model.network, nn.Sequential) else [model.network]
    if modules and isinstance(modules[0], nn.Flatten):
        modules = modules[1:]
    linear, between = modules[::2], modules[1::2]
    fits = (
        len(linear) == len(between) + 1
        and all(type(m) is nn.Linear and m.bias is not None for m in linear)
        and all(type(m) is nn.ReLU for m in between)
        and all(p.requires_grad for p in model.network.parameters())
    )
    if not fits:
        return None
    return [(m.weight.data, m.bias.data, m.weight.grad, m.bias.grad) for m in linear]  # type: ignore[misc]


@lru_cache(maxsize=4)
def onehot(n_classes: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The rows of the identity."""
    return torch.eye(n_classes, dtype=dtype, device=device)


class Chain:
    """A step of such a network; under plain SGD without hooks the gradient is never stored."""

    def __init__(
        self,
        model: FlatModel,
        layers: list[Layer],
        objective: Objective,
        client: Client,
        lr: float,
        corrections: Sequence[Correction],
    ) -> None:
        self.layers, self.objective, self.corrections, self.lr = layers, objective, corrections, lr
        self.direct = client.plain and not corrections
        self.move = None if self.direct else Move(model, client, lr)
        self.simple = type(objective) is CrossEntropy
        self.onehot = onehot(len(layers[-1][1]), model.w.dtype, model.w.device)

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, reference: Tensor | None) -> Tensor:
        inputs, last = [x.flatten(1)], len(self.layers) - 1
        for i, (weight, bias, _, _) in enumerate(self.layers):
            z = torch.addmm(bias, inputs[-1], weight.t())
            inputs.append(z.relu_() if i < last else z)
        delta, ce = self._head(inputs.pop(), y, reference)
        for i in range(last, -1, -1):
            weight, bias, dw, db = self.layers[i]
            below = (delta @ weight).mul_(inputs[i] > 0) if i else delta
            if self.direct:
                weight.addmm_(delta.t(), inputs[i], alpha=-self.lr)
                bias.add_(delta.sum(0), alpha=-self.lr)
            else:
                torch.mm(delta.t(), inputs[i], out=dw)
                torch.sum(delta, 0, out=db)
            delta = below
        if self.move is not None:
            self.move(self.corrections)
        return ce

    def _head(self, logits: Tensor, y: Tensor, reference: Tensor | None) -> tuple[Tensor, Tensor]:
        """(dL/dlogits, mean cross-entropy)."""
        if self.simple:
            logp = torch.log_softmax(logits, 1)
            ce = F.nll_loss(logp, y)
            return logp.exp_().sub_(self.onehot.index_select(0, y)).div_(len(y)), ce
        with torch.enable_grad():
            leaf = logits.requires_grad_()
            value, plain = self.objective.per_sample(leaf, y, reference)
            (delta,) = torch.autograd.grad(value.mean(), leaf)
        return delta, plain.detach().mean()
