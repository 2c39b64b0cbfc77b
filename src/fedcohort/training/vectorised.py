"""The vectorised engine: mini-batches of several clients as one product, on stacked parameters [clients, ...].

Each client has its order of samples and its number of steps, and gets the same model as if it were trained alone, up to
rounding. Clients with more steps come first, so that those with a further mini-batch are the first rows of every
tensor. Chains of Linear and ReLU have the gradients of `training/chain.py`, by batched products; other networks have
those of `torch.func.vmap`. This is faster if launching a kernel takes longer than its work, as for small models.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from fedcohort.hook import Correction, NamedVectors
from fedcohort.training.chain import differentiate_logits
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.memory_layout import gather_rows
from fedcohort.training.passes import PassOrders, flatten_mini_batches
from fedcohort.training.transfer import GroupResults, copy_to_device, yield_updates_in_blocks
from fedcohort.types import ClientUpdate, Ids


@dataclass(frozen=True)
class GroupPlan:
    """The mini-batches of clients that are trained at once.

    Attributes:
        tasks: tasks of the clients.
        pass_orders: passes of each client over its samples.
        position_of_client: position of each client among the columns of the arrays and the rows of `StackedModels`;
            clients with more steps come first.
        batch_sizes: samples of each mini-batch, [steps, columns]; 0 after a client's last step.
        index_arrays: row of each sample among all clients' samples [steps, columns, batch], `batch_sizes`, and the
            positions of the samples in the flattened first array, client by client.
    """

    tasks: Sequence[ClientTask]
    pass_orders: Sequence[PassOrders]
    position_of_client: Ids
    batch_sizes: np.ndarray
    index_arrays: Sequence[np.ndarray]


def combine_gradient_corrections(corrections: Sequence[Correction]) -> Callable[[Tensor, Tensor], None]:
    """Return a function that corrects gradients [k, P] at models [k, P] of the first k clients in place.

    `corrections` are those of one hook, one for each client.
    """
    stack_method = getattr(corrections[0], "stack", None)
    if stack_method is not None:
        correct_gradients: Callable[[Tensor, Tensor], None] = stack_method(corrections).correct
        return correct_gradients

    def correct_client_gradients(g: Tensor, w: Tensor) -> None:
        for correction, g_k, w_k in zip(corrections, g, w, strict=False):
            correction.correct(g_k, w_k)

    return correct_client_gradients


class StackedModels:
    """The local models of several clients, [clients, P], of which the first k take a step at a time.

    Args:
        trainer: local training of one client.
        corrections: corrections of each client's gradients.
        lr: learning rate.
    """

    def __init__(self, trainer: LocalTrainer, corrections: Sequence[Sequence[Correction]], lr: float) -> None:
        self.trainer, self.lr = trainer, lr
        self.corrections = [combine_gradient_corrections(c) for c in zip(*corrections, strict=True)]
        self.w = trainer.server.w.repeat(len(corrections), 1)
        self.is_chain = trainer.chain is not None and trainer.chain.front_layers is None
        self.is_plain = self.is_chain and trainer.client.plain and not corrections[0]
        self.tensor_views = self._view_parameter_tensors(self.w)
        if self.is_plain:  # steps go straight into the weights, which are faster as contiguous tensors
            self.tensor_views = self.written_tensors = [tensor_view.contiguous() for tensor_view in self.tensor_views]
            return
        self.g = torch.zeros_like(self.w)
        self.written_tensors = self._view_parameter_tensors(self.g)
        flat_parameter = torch.nn.Parameter(self.w)
        flat_parameter.grad = self.g
        self.optimizer = None if trainer.client.plain else trainer.client.optimizer(flat_parameter, lr)
        vmap_in_dims = (0, 0, 0, 0 if trainer.objective.uses_reference else None, 0)
        self.gradient_and_loss = vmap(grad_and_value(self._compute_client_loss, has_aux=True), vmap_in_dims)

    def _view_parameter_tensors(self, flat_vectors: Tensor) -> list[Tensor]:
        """Return the tensors of the network as views of `flat_vectors`, [clients, P]."""
        tensor_blocks = self.trainer.worker.layout.parameters
        return [flat_vectors[:, b.offset : b.offset + b.size].unflatten(1, b.shape) for b in tensor_blocks]

    def compute_updates(self) -> Float[Tensor, "k p"]:
        """Return the updates of all clients, trained minus received parameters, [k, P]."""
        w = torch.cat([tensor_view.flatten(1) for tensor_view in self.tensor_views], 1) if self.is_plain else self.w
        return w - self.trainer.server.w

    def train_step(self, x: Tensor, y: Tensor, ref_probs: Tensor | None, sample_shares: Tensor) -> Float[Tensor, "k b"]:
        """Make a step of the first k clients, and return the samples' cross-entropies before the step.

        Args:
            x: inputs, [k, batch, ...].
            y: labels, [k, batch, ...].
            ref_probs: class probabilities of the global model, [k, batch, ..., C]; None if the objective does not use
                them.
            sample_shares: 1 over the size of the client's mini-batch, 0 for padding, [k, batch].
        """
        if self.is_plain:
            return self._step_chain(-self.lr, x, y, ref_probs, sample_shares)
        self.g.zero_()
        if self.is_chain:
            losses = self._step_chain(1.0, x, y, ref_probs, sample_shares)
        else:
            self.g[: len(x)], (_, losses) = self.gradient_and_loss(self.w[: len(x)], x, y, ref_probs, sample_shares)
        self._apply_gradients(len(x))
        return losses

    def _step_chain(self, lr: float, x: Tensor, y: Tensor, ref_probs: Tensor | None, sample_shares: Tensor) -> Tensor:
        """Add `lr` times the gradients to weights or gradient buffers; return the cross-entropies, [k, batch].

        `x`, `y`, `ref_probs` and `sample_shares` are the arguments of `train_step`.
        """
        k, h = len(x), x.flatten(2)
        weights, biases = [w[:k] for w in self.tensor_views[::2]], [b[:k, None] for b in self.tensor_views[1::2]]
        inputs = [h]
        for layer_weight, layer_bias in zip(weights[:-1], biases[:-1], strict=True):
            h = torch.baddbmm(layer_bias, h, layer_weight.transpose(1, 2)).relu_()
            inputs.append(h)
        logits = torch.baddbmm(biases[-1], h, weights[-1].transpose(1, 2))
        delta, losses = differentiate_logits(self.trainer.objective, logits, y, ref_probs, sample_shares)
        for i in range(len(weights) - 1, -1, -1):
            output_gradient = delta
            if i:
                delta = torch.ops.aten.threshold_backward(torch.bmm(delta, weights[i]), inputs[i], 0)
            self.written_tensors[2 * i][:k].baddbmm_(output_gradient.transpose(1, 2), inputs[i], alpha=lr)
            self.written_tensors[2 * i + 1][:k].add_(output_gradient.sum(1), alpha=lr)
        return losses

    def _compute_client_loss(
        self, w: Tensor, x: Tensor, y: Tensor, ref_probs: Tensor | None, sample_shares: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return one client's objective on a mini-batch, and the samples' cross-entropies, [batch].

        Args:
            w: the client's model, [P].
            x: inputs, [batch, ...].
            y: labels, [batch, ...].
            ref_probs: class probabilities of the global model, [batch, ..., C], or None.
            sample_shares: 1 over the size of the mini-batch, 0 for padding, [batch].
        """
        worker, objective = self.trainer.worker, self.trainer.objective
        tensor_views = {tensor_block.name: tensor_block.make_view(w) for tensor_block in worker.layout.parameters}
        with torch.autocast(x.device.type, torch.bfloat16, enabled=worker.bf16):
            logits = functional_call(worker.network, tensor_views, (x,)).to(w.dtype)
        sample_objectives, losses = objective.per_sample(logits, y, ref_probs)
        return objective.transform_mean((sample_objectives * sample_shares).sum()), losses.detach()

    def _apply_gradients(self, k: int) -> None:
        """Apply hooks, clipping and the optimizer to the first `k` clients, in this order."""
        g, w, max_gradient_norm = self.g[:k], self.w[:k], self.trainer.client.clip
        for correct_gradients in self.corrections:
            correct_gradients(g, w)
        if max_gradient_norm is not None:
            g.mul_(torch.clamp(max_gradient_norm / (g.norm(dim=1, keepdim=True) + 1e-12), max=1.0))
        if self.optimizer is None:
            w.add_(g, alpha=-self.lr)
            return
        finished_models = self.w[k:].clone()
        self.optimizer.step()
        self.w[k:] = finished_models


class VectorisedEngine:
    """Local training of `clients_at_once` clients at a time; not for batch norm, dropout and recurrent layers."""

    def __init__(self, trainer: LocalTrainer, clients_at_once: int) -> None:
        self.trainer, self.clients_at_once = trainer, clients_at_once

    def group_client_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of `clients_at_once` consecutive tasks; `tasks` are sorted by size, so sizes are similar."""
        return (tasks[i : i + self.clients_at_once] for i in range(0, len(tasks), self.clients_at_once))

    def train_clients(self, tasks: Sequence[ClientTask], broadcast: NamedVectors) -> Iterator[ClientUpdate]:
        """Train each group at once, and yield the updates in the order of `tasks`.

        broadcast: vectors that the aggregator broadcasts, by name.
        """
        return yield_updates_in_blocks(self._train_groups(tasks, broadcast), self.trainer.server.w.device)

    def _train_groups(self, tasks: Sequence[ClientTask], broadcast: NamedVectors) -> Iterator[GroupResults]:
        plans = [self._plan_client_group(task_group) for task_group in self.group_client_tasks(tasks)]
        index_tensors = copy_to_device([a for plan in plans for a in plan.index_arrays], self.trainer.server.w.device)
        for plan in plans:
            yield self._train_group(plan, broadcast, *(next(index_tensors) for _ in plan.index_arrays))

    def _plan_client_group(self, tasks: Sequence[ClientTask]) -> GroupPlan:
        trainer, task_passes = self.trainer, [self.trainer.draw_sample_passes(task) for task in tasks]
        sample_orders, batch_sizes = zip(*map(flatten_mini_batches, task_passes), strict=True)
        position_of_client = np.argsort(np.argsort([-len(client_sizes) for client_sizes in batch_sizes], kind="stable"))
        size_table = np.zeros((max(map(len, batch_sizes)), len(tasks)), dtype=np.int64)
        for k, client_sizes in zip(position_of_client, batch_sizes, strict=True):
            size_table[: len(client_sizes), k] = client_sizes
        is_padding_free = np.arange(size_table.max(initial=0)) < size_table[:, :, None]
        flat_positions, loss_positions = np.arange(is_padding_free.size).reshape(is_padding_free.shape), []
        row_table = np.zeros_like(flat_positions)
        for k, task, sample_order in zip(position_of_client, tasks, sample_orders, strict=True):
            first_client_row = trainer.federation.train.offsets[task.client]
            row_table[:, k] = first_client_row  # padding repeats a sample, with weight 0
            row_table[:, k][is_padding_free[:, k]] = first_client_row + task.order_sample_rows(sample_order)
            loss_positions.append(flat_positions[:, k][is_padding_free[:, k]])
        index_arrays = [row_table, size_table, np.concatenate(loss_positions)]
        return GroupPlan(tasks, task_passes, position_of_client, size_table, index_arrays)

    @torch.no_grad()
    def _train_group(
        self, plan: GroupPlan, broadcast: NamedVectors, row_table: Tensor, size_table: Tensor, loss_positions: Tensor
    ) -> GroupResults:
        """Train the clients of `plan`, given the aggregator's vectors `broadcast`.

        `row_table`, `size_table` and `loss_positions` are `plan.index_arrays` on the device.
        """
        trainer, train_data = self.trainer, self.trainer.federation.train
        trainer.worker.copy_from(trainer.server)
        corrections = [trainer.begin_client_hooks(task, broadcast) for task in plan.tasks]
        corrections_by_position = [corrections[i] for i in np.argsort(plan.position_of_client)]
        stacked_models = StackedModels(trainer, corrections_by_position, plan.tasks[0].lr)
        is_padding_free = torch.arange(row_table.shape[2], device=row_table.device) < size_table[:, :, None]
        sample_shares = is_padding_free / size_table[:, :, None].clamp(min=1).to(stacked_models.w)
        losses = torch.zeros_like(sample_shares)
        for step_number, k in enumerate((plan.batch_sizes > 0).sum(1).tolist()):
            batch_rows = row_table[step_number, :k].flatten()
            x, y, ref_probs = gather_rows(train_data.x, batch_rows), train_data.y.index_select(0, batch_rows), None
            if trainer.objective.uses_reference:
                ref_probs = trainer.compute_reference_probs(x).unflatten(0, (k, -1))
            trainer.worker.network.train()
            x, y = x.unflatten(0, (k, -1)), y.unflatten(0, (k, -1))
            losses[step_number, :k] = stacked_models.train_step(x, y, ref_probs, sample_shares[step_number, :k])
        updates, training_results = stacked_models.compute_updates(), []
        loss_counts = plan.batch_sizes.sum(0)[plan.position_of_client].tolist()
        for i, client_losses in enumerate(losses.flatten().index_select(0, loss_positions).split(loss_counts)):
            update = updates[plan.position_of_client[i]]
            torch.add(trainer.server.w, update, out=trainer.worker.w)
            result_arguments = (plan.tasks[i], update, plan.pass_orders[i], client_losses, corrections[i])
            training_results.append(trainer.make_result(*result_arguments))
        return training_results
