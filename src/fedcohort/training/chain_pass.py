"""A pass over a client's samples with the gradients of `training/chain.py`: the step goes straight into the weights."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction
from fedcohort.objective.base import Objective
from fedcohort.training.chain import DenseChainNetwork, make_one_hot
from fedcohort.training.step import ParameterStep

BatchRange = tuple[int, int]


class DenseChainPass:
    """A pass over a client's samples with the hand-written gradients of a `DenseChainNetwork`.

    Under plain SGD without hooks, gradients of the dense layers are never stored.

    Args:
        model: the trained model, as a flat vector.
        network: its layers.
        objective: objective of the samples.
        client: the optimizer and its options.
        lr: learning rate.
        corrections: changes of the gradient by client hooks.
    """

    def __init__(
        self,
        model: FlatModel,
        network: DenseChainNetwork,
        objective: Objective,
        client: Client,
        lr: float,
        corrections: Sequence[Correction],
    ) -> None:
        self.front, self.tensors, self.layers = network.front_layers, network.front_tensors, network.dense_layers
        self.objective, self.corrections, self.lr = objective, corrections, lr
        self.apply_step = None if client.plain and not corrections else ParameterStep(model, client, lr)
        self.is_cross_entropy = objective.plain
        self.w = model.w

    @torch.no_grad()
    def __call__(self, x: Tensor, y: Tensor, ref_probs: Tensor | None, batch_ranges: Sequence[BatchRange]) -> Tensor:
        """Make one optimizer step per mini-batch; return the samples' cross-entropies in nats before it, [samples].

        Args:
            x: inputs, [n, ...].
            y: labels, [n].
            ref_probs: class probabilities of the global model, [n, C]; None if the objective does not use them.
            batch_ranges: [start, stop) of each mini-batch, contiguous from 0.
        """
        n_samples, batch_sizes = batch_ranges[-1][1], [b - a for a, b in batch_ranges]
        input_batches = torch.split(x[:n_samples].flatten(1) if self.front is None else x[:n_samples], batch_sizes)
        labels = y[:n_samples]
        if not self.is_cross_entropy:
            ref_prob_batches: Sequence[Tensor | None] = [None] * len(batch_sizes)
            if ref_probs is not None:
                ref_prob_batches = torch.split(ref_probs[:n_samples], batch_sizes)
            label_batches = torch.split(labels, batch_sizes)
            return torch.cat(list(map(self._step_by_autograd, input_batches, label_batches, ref_prob_batches)))
        log_probs = self.w.new_empty((n_samples, len(self.layers[-1].bias)))
        ones_column = self.w.new_ones(max(batch_sizes))
        one_hot_labels = make_one_hot(labels, log_probs.shape[1], log_probs.dtype)
        prob_batches, label_batches = (torch.split(t, batch_sizes) for t in (log_probs, one_hot_labels))
        mini_batches = zip(input_batches, prob_batches, label_batches, batch_sizes, strict=True)
        for batch_inputs, batch_probs, batch_labels, batch_size in mini_batches:
            chain_inputs, layer_inputs, logits = self._compute_logits(batch_inputs)
            torch.log_softmax(logits, 1, out=batch_probs)
            self._backward(
                chain_inputs,
                layer_inputs,
                batch_probs.exp().sub_(batch_labels),
                1.0 / batch_size,
                ones_column[:batch_size],
            )
        return F.nll_loss(log_probs, labels, reduction="none")

    def _step_by_autograd(self, batch_inputs: Tensor, y: Tensor, ref_probs: Tensor | None) -> Tensor:
        """Make a step for an objective other than cross-entropy, and return the samples' cross-entropies, [batch].

        Args:
            batch_inputs: inputs of the mini-batch, [batch, ...].
            y: labels, [batch].
            ref_probs: class probabilities of the global model, [batch, C], or None.
        """
        chain_inputs, layer_inputs, logits = self._compute_logits(batch_inputs)
        with torch.enable_grad():
            sample_objectives, cross_entropies = self.objective.per_sample(logits.requires_grad_(), y, ref_probs)
            (gradient,) = torch.autograd.grad(self.objective.transform_mean(sample_objectives.mean()), logits)
        self._backward(chain_inputs, layer_inputs, gradient, 1.0, self.w.new_ones(len(y)))
        return cross_entropies.detach()

    def _compute_logits(self, x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """Return the chain's inputs with their autograd graph, the inputs of each of its layers, and the logits of `x`.

        The chain's inputs are `x` or the output of the layers before the chain. The inputs of a layer are [batch, in],
        and the logits [batch, classes].
        """
        chain_inputs = x
        if self.front is not None:
            with torch.enable_grad():
                chain_inputs = self.front(x)
        h = chain_inputs.detach()
        layer_inputs = [h]
        for layer in self.layers[:-1]:
            h = torch.addmm(layer.bias, h, layer.transposed_weight).relu_()
            layer_inputs.append(h)
        return chain_inputs, layer_inputs, torch.addmm(self.layers[-1].bias, h, self.layers[-1].transposed_weight)

    def _backward(
        self,
        chain_inputs: Tensor,
        layer_inputs: list[Tensor],
        logit_gradient: Tensor,
        gradient_scale: float,
        ones_column: Tensor,
    ) -> None:
        """Make the step of a mini-batch from the gradient in its logits.

        Args:
            chain_inputs: inputs of the chain, with their autograd graph.
            layer_inputs: inputs of each layer, [batch, in].
            logit_gradient: dL/dlogits divided by `gradient_scale`, [batch, classes].
            gradient_scale: factor of all gradients, such as 1 / batch.
            ones_column: ones, [batch].
        """
        step_size = -self.lr * gradient_scale
        for i in range(len(layer_inputs) - 1, -1, -1):
            layer, h, transposed_gradient = self.layers[i], layer_inputs[i], logit_gradient.t()
            if i or self.tensors:
                logit_gradient = logit_gradient @ layer.weight
            if i:
                logit_gradient = torch.ops.aten.threshold_backward(logit_gradient, h, 0)
            if self.apply_step is None:
                layer.weight.addmm_(transposed_gradient, h, alpha=step_size)
                layer.bias.addmv_(transposed_gradient, ones_column, alpha=step_size)
            else:
                torch.addmm(
                    layer.weight_gradient,
                    transposed_gradient,
                    h,
                    beta=0,
                    alpha=gradient_scale,
                    out=layer.weight_gradient,
                )
                torch.addmv(
                    layer.bias_gradient,
                    transposed_gradient,
                    ones_column,
                    beta=0,
                    alpha=gradient_scale,
                    out=layer.bias_gradient,
                )
        if self.tensors:
            self._step_front(torch.autograd.grad(chain_inputs, self.tensors, logit_gradient), step_size, gradient_scale)
        if self.apply_step is not None:
            self.apply_step(self.corrections)

    def _step_front(self, gradients: Sequence[Tensor], step_size: float, gradient_scale: float) -> None:
        """Make the step of the layers before the chain for plain SGD; else store their gradient for the optimizer.

        Args:
            gradients: gradients of these layers' tensors, divided by `gradient_scale`.
            step_size: -lr * `gradient_scale`.
            gradient_scale: factor of the gradients.
        """
        if self.apply_step is None:
            torch._foreach_add_(self.tensors, list(gradients), alpha=step_size)
            return
        for parameter, gradient in zip(self.tensors, gradients, strict=True):
            torch.mul(gradient, gradient_scale, out=parameter.grad)
