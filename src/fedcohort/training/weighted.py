"""A mini-batch step with weights of samples (`hook.Weigher`), by autograd.

The step minimises outer(mean over j in B of weights_j l_j(y)). l_j is the loss of sample j of the mini-batch B, and
outer the objective's function of the mean (`Objective.transform_mean`). The weights are a function of the model y, of B
and of the client's validation set.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction, Weighing
from fedcohort.objective.base import Objective
from fedcohort.training.memory_layout import gather_rows
from fedcohort.training.passes import yield_batches
from fedcohort.training.recurrent import disable_fused_kernels
from fedcohort.training.step import ParameterStep

LabelledBatch = tuple[Tensor, Tensor]  # inputs, labels


@contextmanager
def keep_eval_mode(network: nn.Module) -> Iterator[None]:
    """Keep `network` in eval mode in the `with` block: statistics of batch norm and dropout do not change."""
    was_in_training_mode = network.training
    network.eval()
    yield
    network.train(was_in_training_mode)


def yield_validation_batches(
    x: Tensor, y: Tensor, batch_size: int | None, rng: np.random.Generator
) -> Iterator[LabelledBatch]:
    """Yield random mini-batches of a client's validation samples without end.

    Args:
        x: inputs, [n, ...].
        y: labels, [n].
        batch_size: samples of a mini-batch; None for all samples at once.
        rng: random generator of the order.
    """
    for batch_order in yield_batches(rng, len(y), batch_size or len(y)):
        batch_rows = torch.from_numpy(batch_order).to(y.device)
        yield gather_rows(x, batch_rows), y.index_select(0, batch_rows)


class MiniBatchStepView:
    """A mini-batch before its step, as hooks that weigh samples see it (`hook.StepView`).

    Args:
        model: the client's model.
        objective: the objective of samples.
        mini_batch: inputs, labels, and class probabilities of the global model or None.
        sample_positions: positions of the samples among the client's samples, [batch].
        next_val_batch: function that returns the next mini-batch of the client's validation samples.
    """

    def __init__(
        self,
        model: FlatModel,
        objective: Objective,
        mini_batch: tuple[Tensor, Tensor, Tensor | None],
        sample_positions: Int64[Tensor, "b"],
        next_val_batch: Callable[[], LabelledBatch],
    ) -> None:
        self.model, self.objective, self.validation = model, objective, next_val_batch
        self.x, self.y, self.reference = mini_batch
        self.positions = sample_positions

    def validation_gradient(self) -> Float[Tensor, "p"]:
        x, y = self.validation()
        with keep_eval_mode(self.model.network):
            return self._compute_gradient(F.cross_entropy(self.model.network(x), y))

    def derivative_along(self, u: Float[Tensor, "p"]) -> Float[Tensor, "b"]:
        """Return the derivative of each sample's objective in the direction `u`, [b], by forward-mode autograd.

        It is exact, and takes one forward pass that computes values and derivatives. Inputs are in the default memory
        layout, as torch's forward mode of group norm supports no other.
        """
        network, tensor_blocks = self.model.network, self.model.layout.parameters
        with keep_eval_mode(network), disable_fused_kernels(network), torch.no_grad(), forward_ad.dual_level():
            dual_tensors = {
                b.name: forward_ad.make_dual(b.make_view(self.model.w).contiguous(), b.make_view(u).contiguous())
                for b in tensor_blocks
            }
            logits = functional_call(network, dual_tensors, (self.x.contiguous(),))
            sample_objectives, _ = self.objective.per_sample(logits, self.y, self.reference)
            sample_derivatives: Tensor | None = forward_ad.unpack_dual(sample_objectives).tangent
        return torch.zeros_like(sample_objectives) if sample_derivatives is None else sample_derivatives

    def hessian_product(self, u: Float[Tensor, "p"], weights: Float[Tensor, "b"]) -> Float[Tensor, "p"]:
        """Return H u, [P], the gradient of <gradient, u>; H is the Hessian of the loss with sample `weights` [b]."""
        with keep_eval_mode(self.model.network):
            sample_objectives, _ = self.objective.per_sample(self.model.network(self.x), self.y, self.reference)
            weighted_loss = self.objective.transform_mean((weights * sample_objectives).mean())
            gradients = torch.autograd.grad(weighted_loss, self.model.tensors, create_graph=True)
            gradients_and_blocks = zip(gradients, self.model.layout.parameters, strict=True)
            dot_products = [(g * tensor_block.make_view(u)).sum() for g, tensor_block in gradients_and_blocks]
            return self._compute_gradient(torch.stack(dot_products).sum())

    def _compute_gradient(self, differentiated_loss: Tensor) -> Tensor:
        self.model.g.zero_()
        torch.autograd.backward(differentiated_loss)
        return self.model.g.clone()


class WeightedStep:
    """A step on a mini-batch whose samples have weights.

    Args:
        model: the client's model.
        objective: objective of the samples.
        client: the optimizer and its options.
        lr: learning rate.
        corrections: changes of the gradient by client hooks, of which one weighs samples.
        batch_positions: iterator over the positions of each mini-batch's samples among the client's samples, [batch].
        val_batches: iterator over mini-batches of the client's validation samples.
    """

    def __init__(
        self,
        model: FlatModel,
        objective: Objective,
        client: Client,
        lr: float,
        corrections: Sequence[Correction],
        batch_positions: Iterator[Tensor],
        val_batches: Iterator[LabelledBatch],
    ) -> None:
        self.model, self.objective, self.corrections = model, objective, corrections
        self.sample_weigher = next(h for h in corrections if isinstance(h, Weighing))
        self.positions, self.validation = batch_positions, val_batches
        self.apply_step = ParameterStep(model, client, lr)

    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None) -> Tensor:
        step_view_arguments = ((x, y, ref_probs), next(self.positions), self.validation.__next__)
        sample_weights = self.sample_weigher.weigh(MiniBatchStepView(self.model, self.objective, *step_view_arguments))
        sample_objectives, cross_entropies = self.objective.per_sample(self.model.logits(x), y, ref_probs)
        self.model.g.zero_()
        torch.autograd.backward(self.objective.transform_mean((sample_weights * sample_objectives).mean()))
        self.apply_step(self.corrections)
        return cross_entropies.detach()
