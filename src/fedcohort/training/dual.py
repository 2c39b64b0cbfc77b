"""Linear models in the dual: several clients at a time, each by its n x n Gram matrix instead of its weights.

SGD from w_t on n samples X gives W = W_t - lr A' X. Row i of A [n, classes] is the sum of the gradients dL/dlogits of
sample i, each divided by the size of its mini-batch. A step then needs no weights:

    logits of a batch B = X_B W_t' + b_t - lr (X_B X' + 1) A,    A_B <- A_B + dL/dlogits

where the 1 stands for the bias. One matrix product gives X W_t' of all clients of a group, and one the sum of their
updates (-lr A' X, -lr sum of A's rows). In a first pass A is 0 from B on, so that X X' is needed up to B only.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from fedcohort.training import dual_group
from fedcohort.training.chain import differentiate_logits, make_one_hot
from fedcohort.training.client_task import ClientTask
from fedcohort.training.dual_group import GroupPlan, GroupShape, PaddedSamples, reorder_gram_matrices
from fedcohort.training.local import LocalTrainer
from fedcohort.training.memory_layout import gather_rows
from fedcohort.training.transfer import GroupResults, copy_to_device, yield_updates_in_blocks
from fedcohort.types import ClientUpdate, UpdateGroup


class GramMatrixEngine:
    """Local training of linear models, many clients at a time, each by the Gram matrix of its samples.

    Args:
        trainer: trains single clients; its model must be a single Linear layer.
        max_clients: largest number of clients of a group, whose size `GroupShape.find_max_clients` limits, too.
    """

    def __init__(self, trainer: LocalTrainer, max_clients: int = dual_group.MAX_ENTRIES) -> None:
        if trainer.chain is None or not trainer.chain.is_linear:
            raise ValueError("GramMatrixEngine needs a trainer of a single Linear layer: check supports_trainer first")
        self.trainer, self.max_clients, self.layer = trainer, max_clients, trainer.chain.dense_layers[0]

    @staticmethod
    def supports_trainer(trainer: LocalTrainer) -> bool:
        """Return whether the model of `trainer` is a Linear layer, and its clients train by plain SGD without hooks."""
        return trainer.chain is not None and trainer.chain.is_linear and trainer.client.plain and not trainer.hooks

    def group_client_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of consecutive `tasks` that can be trained at once; updates do not depend on the groups."""
        for shape, task_group in self._group_by_shape(tasks):
            yield from ([task] for task in task_group) if shape is None else [task_group]

    def _group_by_shape(self, tasks: Sequence[ClientTask]) -> Iterator[tuple[GroupShape | None, Sequence[ClientTask]]]:
        """Yield groups of consecutive tasks with their shape, which is None for clients that are trained one by one."""
        for shape, consecutive_tasks in itertools.groupby(tasks, self._find_group_shape):
            same_shape_tasks, group_size = list(consecutive_tasks), max(1, len(tasks))
            if shape is not None:
                group_size = min(self.max_clients, shape.find_max_clients(self.layer.weight.shape[1]))
            for group_start in range(0, len(same_shape_tasks), group_size):
                yield shape, same_shape_tasks[group_start : group_start + group_size]

    def train_clients(self, tasks: Sequence[ClientTask], broadcast: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train the clients, and yield updates in the order of `tasks`; `broadcast` has the aggregator's vectors."""
        return yield_updates_in_blocks(self._train_groups(tasks, broadcast), self.layer.weight.device)

    def _train_groups(self, tasks: Sequence[ClientTask], broadcast: Mapping[str, Tensor]) -> Iterator[GroupResults]:
        task_groups = list(self._group_by_shape(tasks))
        group_plans = [None if s is None else self._plan_client_group(task_group, s) for s, task_group in task_groups]
        index_tensors = copy_to_device([a for p in group_plans if p for a in p.index_arrays], self.layer.weight.device)
        for (_, task_group), group_plan in zip(task_groups, group_plans, strict=True):
            if group_plan is None:
                yield from self.trainer.train_one_by_one(task_group, broadcast)
            else:
                yield self._train_group(group_plan, *(next(index_tensors) for _ in group_plan.index_arrays))

    def _find_group_shape(self, task: ClientTask) -> GroupShape | None:
        """Return the `GroupShape` of `task`; None if it is trained by plain steps, which are faster or the only way."""
        n_samples, batch_size = self.trainer.count_samples(task), self.trainer.client.batch
        n_steps = -(-n_samples // (batch_size or n_samples))
        batch_width = batch_size if batch_size is not None and n_steps > 1 else -(-n_samples // 8) * 8
        n_passes = task.units if self.trainer.client.steps is None else task.units / n_steps
        (n_classes, n_inputs), shape = self.layer.weight.shape, GroupShape(n_steps, batch_width, task.units)
        n_flops, step_overheads_s = (
            4.0 * n_samples * n_inputs * n_classes,
            n_passes * n_steps * dual_group.STEP_OVERHEAD_S,
        )
        n_gram_flops = n_flops + 2.0 * n_samples * n_samples * (n_inputs + n_passes * n_classes)
        # Clients of a group share the steps' overhead. A full group is supposed: the choice must not depend on others.
        gram_engine_s = n_gram_flops / dual_group.FLOPS_PER_SECOND + step_overheads_s / shape.find_max_clients(n_inputs)
        gram_engine_s += max(0.0, n_passes - 1) * n_samples**2 * dual_group.REORDER_ENTRY_S
        is_faster = gram_engine_s < n_passes * n_flops / dual_group.FLOPS_PER_SECOND + step_overheads_s
        return shape if is_faster and shape.n_rows**2 <= dual_group.MAX_ENTRIES and task.units else None

    def _plan_client_group(self, tasks: Sequence[ClientTask], shape: GroupShape) -> GroupPlan:
        task_passes = [self.trainer.draw_sample_passes(task) for task in tasks]
        client_offsets, n_later_passes = self.trainer.federation.train.offsets, len(task_passes[0]) - 1
        row_table, n_samples = np.empty((len(tasks), shape.n_rows), np.int64), np.empty(len(tasks), np.int64)
        later_orders = np.tile(np.arange(shape.n_rows), (n_later_passes, len(tasks), 1))
        for k, (task, pass_orders) in enumerate(zip(tasks, task_passes, strict=True)):
            sample_order = pass_orders[0][0]
            n = n_samples[k] = len(sample_order)
            row_table[k, :n] = task.order_sample_rows(sample_order)
            row_table[k, n:] = row_table[k, 0]  # padding with a sample of the client, as another client's may be NaN
            row_table[k] += client_offsets[task.client]
            if n_later_passes:
                position_of_sample = np.argsort(sample_order)
                later_orders[:, k, :n] = [position_of_sample[later_order] for later_order, _ in pass_orders[1:]]
        return GroupPlan(tasks, shape, task_passes, [row_table, later_orders, n_samples])

    @torch.no_grad()
    def _train_group(self, plan: GroupPlan, row_table: Tensor, later_orders: Tensor, n_samples: Tensor) -> GroupResults:
        """Train the clients of `plan` together. The other arguments are its `index_arrays`, tensors on the device."""
        trainer, lr, batch_width = self.trainer, plan.tasks[0].lr, plan.shape.batch_width
        trainer.worker.copy_from(trainer.server)
        clients = self._gather_client_samples(plan.shape, row_table, n_samples)
        a, n_batches_by_pass = torch.zeros_like(clients.logits), [len(r) for _, r in plan.pass_orders[0]]
        grams = torch.bmm(clients.x, clients.x.transpose(1, 2)).add_(1.0) if len(n_batches_by_pass) > 1 else None
        batch_starts = range(0, n_batches_by_pass[0] * batch_width, batch_width)
        losses, logit_changes = self._train_pass(clients, grams, a, batch_starts, lr)
        losses_by_pass = [losses.unbind()]
        for pass_order, n_steps in zip(later_orders.long(), n_batches_by_pass[1:], strict=True):
            # Rows are brought into the order of the pass, so that its mini-batches are slices; A returns to its order.
            dual_row_indices = pass_order[:, :, None].expand_as(a)
            pass_duals = a.gather(1, dual_row_indices)
            pass_grams = None if grams is None else reorder_gram_matrices(grams, pass_order)
            batch_starts = range(0, n_steps * batch_width, batch_width)
            losses, _ = self._train_pass(clients.reorder_samples(pass_order), pass_grams, pass_duals, batch_starts, lr)
            losses_by_pass.append(losses.unbind())
            a.scatter_(1, dual_row_indices, pass_duals)
        update_norms = lr * self._squared_update_norms(clients, grams, a, logit_changes, batch_width).clamp(0).sqrt()
        update_group, training_results = self._group_updates(plan.tasks, a, clients.x, lr), []
        for k, (task, pass_orders) in enumerate(zip(plan.tasks, plan.pass_orders, strict=True)):
            compute_update = partial(self._make_update, a, clients.x, k, lr)
            delta = compute_update() if task.needs_final_loss or update_group is None else compute_update
            if isinstance(delta, Tensor):
                torch.add(trainer.server.w, delta, out=trainer.worker.w)
            pass_losses = [p[k][: r[-1][1]] for p, (_, r) in zip(losses_by_pass, pass_orders, strict=True)]
            client_losses = pass_losses[0] if len(pass_losses) == 1 else torch.cat(pass_losses)
            group_and_norm = None if update_group is None else (update_group, update_norms[k])
            training_results.append(trainer.make_result(task, delta, pass_orders, client_losses, (), group_and_norm))
        return training_results

    def _gather_client_samples(self, shape: GroupShape, row_table: Tensor, n_samples: Tensor) -> PaddedSamples:
        """Gather the samples in `row_table` [k, rows] of clients with `n_samples` [k], and compute their logits."""
        train_data, flat_sample_rows = self.trainer.federation.train, row_table.flatten()
        x = gather_rows(train_data.x, flat_sample_rows).flatten(1)
        logits = torch.addmm(self.layer.bias, x, self.layer.transposed_weight)
        last_batch_start, row_positions = shape.n_rows - shape.batch_width, torch.arange(shape.n_rows, device=x.device)
        n_in_last_batch = (n_samples[:, None] - last_batch_start).double()
        row_weights = torch.where(row_positions < last_batch_start, 1.0 / shape.batch_width, 1.0 / n_in_last_batch)
        sample_shares = (row_weights * (row_positions < n_samples[:, None])).to(logits)
        y = train_data.y.index_select(0, flat_sample_rows).view_as(row_table)
        return PaddedSamples(x.unflatten(0, row_table.shape), y, logits.unflatten(0, row_table.shape), sample_shares)

    def _train_pass(
        self, clients: PaddedSamples, grams: Tensor | None, a: Tensor, batch_starts: range, lr: float
    ) -> tuple[Float[Tensor, "k s"], Float[Tensor, "k s c"]]:
        """Make a pass of mini-batches over the samples of several clients, which changes `a`.

        Args:
            clients: the padded samples, in the order of the pass.
            grams: X X' + 1 of each client's samples X in this order; None in a single pass, which uses only blocks.
            a: sum A of each sample's gradients dL/dlogits so far, [clients, samples, classes].
            batch_starts: first row of each mini-batch; the step of the range is their size.
            lr: learning rate.

        Returns:
            Cross-entropies in nats, and (X_B X' + 1) A of each mini-batch B at its step.
        """
        objective, batch_width, all_logits = self.trainer.objective, batch_starts.step, clients.logits
        batch_losses, logit_changes = [], []
        one_hot = make_one_hot(clients.y, all_logits.shape[2], all_logits.dtype) if objective.plain else all_logits
        for batch_start in batch_starts:
            batch_rows = slice(batch_start, batch_start + batch_width)
            if grams is None:
                earlier_samples, inputs = slice(0, batch_start), clients.x
                gram_block = torch.bmm(inputs[:, batch_rows], inputs[:, earlier_samples].transpose(1, 2)).add_(1.0)
            else:
                earlier_samples, gram_block = slice(None), grams[:, batch_rows]
            logit_changes.append(torch.bmm(gram_block, a[:, earlier_samples]))
            logits = torch.sub(all_logits[:, batch_rows], logit_changes[-1], alpha=lr)
            y, batch_shares = clients.y[:, batch_rows], clients.sample_shares[:, batch_rows]
            if objective.plain:
                batch_losses.append(logits)
                a[:, batch_rows] += logits.softmax(2).sub_(one_hot[:, batch_rows]).mul_(batch_shares[:, :, None])
                continue
            ref_probs = all_logits[:, batch_rows].softmax(2) if objective.uses_reference else None
            logit_gradient, cross_entropies = differentiate_logits(objective, logits, y, ref_probs, batch_shares)
            a[:, batch_rows] += logit_gradient
            batch_losses.append(cross_entropies)
        if objective.plain:  # the list has logits
            logits = torch.cat(batch_losses, 1)
            batch_losses = [F.cross_entropy(logits.transpose(1, 2), clients.y[:, : logits.shape[1]], reduction="none")]
        return torch.cat(batch_losses, 1), torch.cat(logit_changes, 1)

    def _squared_update_norms(
        self, clients: PaddedSamples, grams: Tensor | None, a: Tensor, logit_changes: Tensor, batch_width: int
    ) -> Float[Tensor, "k"]:
        """Return each client's squared norm of its update divided by lr: |A' X|^2 + |sum of A's rows|^2.

        It is the sum of A * (X X' + 1) A. `clients`, `grams` and `a` are those of `_train_pass`; `batch_width` is a
        mini-batch's size. In a single pass, `logit_changes` has the part below the diagonal, which counts twice.
        """
        if grams is not None:
            return (a * torch.bmm(grams, a)).sum((1, 2), dtype=torch.float64)
        x, batch_duals = (t.flatten(0, 1).unflatten(0, (-1, batch_width)) for t in (clients.x, a))
        gram_dual_product = torch.bmm(torch.bmm(x, x.transpose(1, 2)).add_(1.0), batch_duals).view_as(a)
        gram_dual_product[:, : logit_changes.shape[1]].add_(logit_changes, alpha=2)
        return (a * gram_dual_product).sum((1, 2), dtype=torch.float64)

    def _group_updates(self, tasks: Sequence[ClientTask], a: Tensor, x: Tensor, lr: float) -> UpdateGroup | None:
        """Return an object that sums the clients' updates without computing each one.

        It is None if the server does not get all updates whole and unchanged. A client's update is -lr A' X.

        Args:
            tasks: tasks of the clients, each with the tensors that the client sends.
            a: sum A of each sample's gradients dL/dlogits, [clients, samples, classes].
            x: X, the samples, [clients, samples, inputs].
            lr: learning rate.
        """
        if not all(self.trainer.sends_whole_update(task) for task in tasks):
            return None

        def sum_updates(weights: Mapping[int, float]) -> Tensor:
            included_rows = [k for k, task in enumerate(tasks) if task.client in weights]
            update_sum = torch.zeros_like(self.trainer.worker.w)
            if not included_rows:
                return update_sum
            update_weights = [weights[tasks[k].client] for k in included_rows]
            weighted_duals = torch.cat(torch._foreach_mul([a[k] for k in included_rows], update_weights))
            # An excluded client's numbers may be NaN, and 0 x NaN is NaN.
            inputs = x.flatten(0, 1) if len(included_rows) == len(tasks) else torch.cat([x[k] for k in included_rows])
            return self._add_primal_update(update_sum, weighted_duals, inputs, lr)

        return UpdateGroup(len(tasks), sum_updates)

    def _make_update(self, a: Tensor, x: Tensor, k: int, lr: float) -> Tensor:
        """Return the update of the `k`-th client of a group, [P]; `a`, `x` and `lr` are those of `_group_updates`."""
        return self._add_primal_update(torch.zeros_like(self.trainer.worker.w), a[k], x[k], lr)

    @torch.no_grad()
    def _add_primal_update(self, update: Tensor, a: Tensor, x: Tensor, lr: float) -> Tensor:
        """Add (-lr A' X, -lr sum of A's rows) to `update`, [P], and return it; `a` is [n, classes], `x` [n, inputs]."""
        weight, bias = self.trainer.worker.layout.parameters
        weight.make_view(update).addmm_(a.t(), x, alpha=-lr)
        bias.make_view(update).sub_(a.sum(0), alpha=lr)
        return update
