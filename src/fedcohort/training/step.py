"""Mini-batch steps on the flat model, in three ways with the same results; the fastest applicable one is used.

Plain      y <- y - lr g, for plain SGD without hooks
Corrected  the flat gradient passes through the hooks, then through an optimizer of torch.optim or y <- y - lr g
Chain      hand-written gradients, a whole pass at once (`training/chain_pass.py`)

A fourth is for hooks that weigh samples (`training/weighted.py`).
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from fedcohort.client.base import Client
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction
from fedcohort.objective.base import Objective
from fedcohort.training.passes import BatchRanges


class TrainingStep(Protocol):
    """A function that makes one mini-batch step."""

    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None) -> Tensor:
        """Train on one mini-batch, and return its samples' cross-entropies before the step, [batch], detached.

        Args:
            x: inputs, [batch, ...].
            y: labels, [batch, ...].
            ref_probs: class probabilities of the global model, [batch, ..., C]; None if the objective does not use
                them.
        """
        ...


class TrainingPass(Protocol):
    """A function that makes the steps of one pass over a client's samples."""

    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None, batch_ranges: BatchRanges) -> Tensor:
        """Make one step of local training for each mini-batch of a pass; return the losses of its samples.

        Args:
            x: inputs of the pass, [n, ...].
            y: labels, [n, ...].
            ref_probs: class probabilities of the global model, [n, ..., C]; None if the objective does not use them.
            batch_ranges: [start, stop) of each mini-batch; they are contiguous from 0.

        Returns:
            Each sample's cross-entropy before its step, in nats, [last stop], detached.
        """
        ...


class StepwisePass:
    """A pass over a client's samples that calls `training_step` for one mini-batch after the other."""

    def __init__(self, training_step: TrainingStep) -> None:
        self.step = training_step

    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None, batch_ranges: BatchRanges) -> Tensor:
        p = ref_probs
        return torch.cat([self.step(x[a:b], y[a:b], None if p is None else p[a:b]) for a, b in batch_ranges])


def evaluate_objective(
    model: FlatModel, objective: Objective, x: Tensor, y: Tensor, reference_probs: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the objective of a mini-batch, with its graph, and its samples' cross-entropies [batch], detached.

    Args:
        model: the trained model.
        objective: the objective of samples.
        x: inputs, [batch, ...].
        y: labels, [batch, ...].
        reference_probs: class probabilities of the global model, [batch, ..., C], or None.
    """
    sample_objectives, cross_entropies = objective.per_sample(model.logits(x), y, reference_probs)
    return objective.transform_mean(sample_objectives.mean()), cross_entropies.detach()


class PlainSgdStep:
    """A step of plain SGD on the parameters of `model`, with the rate `lr` and without client hooks."""

    def __init__(self, model: FlatModel, objective: Objective, lr: float) -> None:
        self.model, self.objective, self.lr = model, objective, lr

    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None) -> Tensor:
        loss, cross_entropies = evaluate_objective(self.model, self.objective, x, y, ref_probs)
        gradients = torch.autograd.grad(loss, self.model.tensors)
        with torch.no_grad():
            torch._foreach_add_(self.model.tensors, gradients, alpha=-self.lr)
        return cross_entropies


class CorrectedStep:
    """A step by the optimizer of `client` with the rate `lr`; `corrections` of client hooks may change the gradient."""

    def __init__(
        self, model: FlatModel, objective: Objective, client: Client, lr: float, corrections: Sequence[Correction]
    ) -> None:
        self.model, self.objective, self.corrections = model, objective, corrections
        self.apply_step = ParameterStep(model, client, lr)

    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None) -> Tensor:
        loss, cross_entropies = evaluate_objective(self.model, self.objective, x, y, ref_probs)
        self.model.g.zero_()
        loss.backward()
        self.apply_step(self.corrections)
        return cross_entropies


class ParameterStep:
    """An update of `model.w` from the raw gradient in `model.g`: by hooks, then clipping, then the optimizer.

    `client` has the options of clipping and the optimizer, and `lr` is the learning rate.
    """

    def __init__(self, model: FlatModel, client: Client, lr: float) -> None:
        self.model, self.clip, self.lr = model, client.clip, lr
        self.optimizer = None
        if not client.plain:
            flat_parameter = torch.nn.Parameter(model.w)
            flat_parameter.grad = model.g
            self.optimizer = client.optimizer(flat_parameter, lr)

    @torch.no_grad()
    def __call__(self, corrections: Sequence[Correction]) -> None:
        g, y = self.model.g, self.model.w
        for correction in corrections:
            correction.correct(g, y)
        if self.clip is not None:
            g.mul_(torch.clamp(self.clip / (g.norm() + 1e-12), max=1.0))
        if self.optimizer is None:
            y.add_(g, alpha=-self.lr)
        else:
            self.optimizer.step()
