"""Linear models in the dual: several clients at a time, each by its n x n Gram matrix instead of its weights.

SGD from w_t on n samples X gives W = W_t - lr A' X. Row i of A [n, classes] is the sum of the gradients dL/dlogits of
sample i, each divided by the size of its mini-batch. A step then needs no weights:

    logits of a batch B = X_B W_t' + b_t - lr (X_B X' + 1) A,    A_B <- A_B + dL/dlogits

where the 1 stands for the bias. X W_t' and X X' are computed once per round, for any number of epochs. The update is
(-lr A' X, -lr sum of A's rows). The remaining work of a step is so small that many clients are trained at once.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from fedcohort.training.chain import output_gradient_and_losses
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.passes import PassOrders
from fedcohort.training.transfer import Results, finish_in_blocks, to_device
from fedcohort.types import ClientUpdate, UpdateGroup

# Of small matrix products, and of a mini-batch step apart from them; they only decide between dual and plain steps.
FLOPS_PER_SECOND, STEP_OVERHEAD_S = 5e10, 6e-5
MAX_GRAM_ENTRIES = 2**20  # largest number of entries of all Gram matrices in memory


@dataclass(frozen=True)
class GroupShape:
    """Properties that clients must share to be trained at once.

    Attributes:
        steps: number of steps of one pass.
        batch_width: number of samples of a step, with padding.
        n_passes: epochs or steps of the job.
    """

    steps: int
    batch_width: int
    n_passes: int

    @property
    def n_rows(self) -> int:
        return self.steps * self.batch_width


@dataclass(frozen=True)
class GroupPlan:
    """A group of clients of equal `GroupShape`, which are trained at once.

    Attributes:
        passes: passes of each client.
        arrays: order of the rows in each pass [passes, k, rows], numbers of samples [k], and `ClientTask.rows` of each
            client that does not train on all of its samples.
    """

    tasks: Sequence[ClientTask]
    shape: GroupShape
    passes: Sequence[PassOrders]
    arrays: Sequence[np.ndarray]


@dataclass(frozen=True)
class PaddedClients:
    """Samples of several clients, padded to the same number of rows.

    Attributes:
        logits: X W_t' + b_t of each client.
        gram_matrices: X X' + 1 of each client.
        y: labels.
        sample_shares: 1 over the size of the mini-batch at this row, 0 for padding.
    """

    logits: Float[Tensor, "k rows c"]
    gram_matrices: Float[Tensor, "k rows rows"]
    y: Int64[Tensor, "k rows"]
    sample_shares: Float[Tensor, "k rows"]

    def reorder(self, order: Int64[Tensor, "k rows"]) -> "PaddedClients":
        """Return the samples in another order, with the same mini-batches of rows."""
        row_index, column_index = order[:, :, None], order[:, None, :]
        gram = self.gram_matrices.gather(1, row_index.expand_as(self.gram_matrices))
        gram = gram.gather(2, column_index.expand_as(gram))
        logits = self.logits.gather(1, row_index.expand_as(self.logits))
        return PaddedClients(logits, gram, self.y.gather(1, order), self.sample_shares)


class Dual:
    """Trains up to `chunk` clients of equal shape at a time, or single clients in turn if that is faster."""

    def __init__(self, trainer: LocalTrainer, chunk: int) -> None:
        if trainer.chain is None or not trainer.chain.is_linear:
            raise ValueError("the dual engine needs a model with a single linear layer")
        self.trainer, self.chunk, self.layer = trainer, chunk, trainer.chain.layers[0]

    @staticmethod
    def supports(trainer: LocalTrainer) -> bool:
        """Return whether the model is a single Linear layer and clients train by plain SGD without hooks."""
        return trainer.chain is not None and trainer.chain.is_linear and trainer.client.plain and not trainer.hooks

    def group_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of consecutive tasks of equal shape; a client's update does not depend on its group."""
        for shape, group in self._shaped_groups(tasks):
            yield from ([task] for task in group) if shape is None else [group]

    def _shaped_groups(self, tasks: Sequence[ClientTask]) -> Iterator[tuple[GroupShape | None, Sequence[ClientTask]]]:
        """Yield groups of consecutive tasks with their shape, which is None for clients that are trained one by one."""
        for shape, adjacent_tasks in itertools.groupby(tasks, self._shape_of_task):
            same_shape = list(adjacent_tasks)
            group_size = len(same_shape) if shape is None else min(self.chunk, MAX_GRAM_ENTRIES // shape.n_rows**2)
            for first_task in range(0, len(same_shape), group_size):
                yield shape, same_shape[first_task : first_task + group_size]

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train the clients, and yield their updates in the order of the tasks."""
        return finish_in_blocks(self._train_groups(tasks, down), self.layer.weight.device)

    def _train_groups(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[Results]:
        groups = list(self._shaped_groups(tasks))
        plans = [None if shape is None else self._plan_group(group, shape) for shape, group in groups]
        arrays = [array for plan in plans if plan is not None for array in plan.arrays]
        tensors = to_device(arrays, self.layer.weight.device)
        for (_, group), plan in zip(groups, plans, strict=True):
            if plan is None:
                yield from self.trainer.train_each(group, down)
            else:
                yield self._train_group(plan, *(next(tensors) for _ in plan.arrays))

    def _shape_of_task(self, task: ClientTask) -> GroupShape | None:
        """Return the shape of a task; None if plain steps are faster because the client has too many samples."""
        trainer = self.trainer
        n_samples, batch = trainer.count_samples(task), trainer.client.batch
        steps = -(-n_samples // (batch or n_samples))
        width = batch if batch is not None and steps > 1 else -(-n_samples // 8) * 8
        passes = task.units if trainer.client.steps is None else task.units / steps
        n_classes, n_inputs = self.layer.weight.shape
        n_products = 4.0 * n_samples * n_inputs * n_classes
        plain_s = passes * (n_products / FLOPS_PER_SECOND + steps * STEP_OVERHEAD_S)
        dual_s = (n_products + 2.0 * n_samples * n_samples * (n_inputs + passes * n_classes)) / FLOPS_PER_SECOND
        shape = GroupShape(steps, width, task.units)
        return shape if dual_s < plain_s and shape.n_rows**2 <= MAX_GRAM_ENTRIES and task.units else None

    def _plan_group(self, tasks: Sequence[ClientTask], shape: GroupShape) -> GroupPlan:
        all_passes = [self.trainer.passes(task) for task in tasks]
        row_orders = np.tile(np.arange(shape.n_rows), (len(all_passes[0]), len(tasks), 1))
        for client_row, passes in enumerate(all_passes):
            for pass_row, (order, _) in enumerate(passes):
                row_orders[pass_row, client_row, : len(order)] = order
        sample_counts = np.array([self.trainer.count_samples(task) for task in tasks])
        chosen_rows = [task.rows for task in tasks if task.rows is not None]
        return GroupPlan(tasks, shape, all_passes, [row_orders, sample_counts, *chosen_rows])

    @torch.no_grad()
    def _train_group(self, plan: GroupPlan, orders: Tensor, counts: Tensor, *used_rows: Tensor) -> Results:
        """Train the clients of a plan; the other arguments are its arrays on the device."""
        trainer, rows = self.trainer, iter(used_rows)
        trainer.worker.load(trainer.server)
        samples = [trainer.samples(task, None if task.rows is None else next(rows)) for task in plan.tasks]
        samples = [(x.flatten(1), y) for x, y in samples]
        inputs, group = [x for x, _ in samples], self._pad_clients(samples, plan.shape, counts)
        a, tables = torch.zeros_like(group.logits), []
        for p, order in enumerate(orders.long()):
            # Rows are brought into the order of the pass, so that its mini-batches are slices; A returns to its order.
            a_indices = order[:, :, None].expand_as(a)
            a_in_order = a.gather(1, a_indices)
            steps = len(plan.passes[0][p][1])
            width, lr = plan.shape.batch_width, plan.tasks[0].lr
            tables.append(self._train_pass(group.reorder(order), a_in_order, width, steps, lr))
            a.scatter_(1, a_indices, a_in_order)
        update_group = self._group_updates(plan.tasks, group.gram_matrices, a, inputs)
        results = []
        for k, (task, x, passes) in enumerate(zip(plan.tasks, inputs, plan.passes, strict=True)):
            make_update = partial(self._primal_update, a[k, : len(x)], x, task.lr)
            delta = make_update() if task.loss_after or update_group is None else make_update
            if isinstance(delta, Tensor):
                torch.add(trainer.server.w, delta, out=trainer.worker.w)
            losses = [table[k, : batch_ranges[-1][1]] for table, (_, batch_ranges) in zip(tables, passes, strict=True)]
            group_and_norm = None if update_group is None else (update_group[0], update_group[1][k])
            results.append(trainer.result(task, delta, passes, torch.cat(losses), (), group_and_norm))
        return results

    def _group_updates(
        self, tasks: Sequence[ClientTask], gram: Tensor, a: Tensor, inputs: Sequence[Tensor]
    ) -> tuple[UpdateGroup, Tensor] | None:
        """Return the sum and the norms [k] of updates without computing single updates.

        |lr A' X|^2 = lr^2 sum of A * (X X') A, where gram is X X' + 1 because of the bias. None if the server does not
        get all updates unchanged.
        """
        if not all(self.trainer.sends_all(task) for task in tasks):
            return None
        lr, row_of_client = tasks[0].lr, {task.client: k for k, task in enumerate(tasks)}
        squares = (a * torch.bmm(gram, a)).sum((1, 2), dtype=torch.float64)

        def total(weights: Mapping[int, float]) -> Tensor:
            update_sum = torch.zeros_like(self.trainer.worker.w)
            for client, weight in weights.items():
                x = inputs[row_of_client[client]]
                self._add_primal(update_sum, a[row_of_client[client], : len(x)], x, weight * lr)
            return update_sum

        return UpdateGroup(len(tasks), total), lr * squares.clamp(min=0).sqrt()

    def _pad_clients(
        self, samples: Sequence[tuple[Tensor, Tensor]], shape: GroupShape, counts: Tensor
    ) -> PaddedClients:
        """Compute the logits and the Gram matrix of each client's samples, with padding; counts: samples of each."""
        weight, bias, rows, k = self.layer.weight, self.layer.bias, shape.n_rows, len(samples)
        logits, gram = weight.new_zeros(k, rows, len(bias)), weight.new_zeros(k, rows, rows)
        y = torch.zeros(k, rows, dtype=torch.int64, device=weight.device)
        for i, (x, client_labels) in enumerate(samples):
            n = x.shape[0]
            torch.addmm(bias, x, self.layer.transposed_weight, out=logits[i, :n])
            torch.mm(x, x.t(), out=gram[i, :n, :n])
            y[i, :n] = client_labels
        last_row, row = (shape.steps - 1) * shape.batch_width, torch.arange(rows, device=weight.device)
        weights = torch.where(row < last_row, 1.0 / shape.batch_width, 1.0 / (counts[:, None] - last_row).double())
        return PaddedClients(logits, gram.add_(1.0), y, (weights * (row < counts[:, None])).to(weight))

    def _train_pass(self, group: PaddedClients, a: Tensor, width: int, steps: int, lr: float) -> Float[Tensor, "k s"]:
        """Make one pass in the order of the rows, which changes `a`; return cross-entropies, [k, steps * width]."""
        objective, losses_by_step = self.trainer.objective, []
        reference_probs = group.logits.softmax(2) if objective.uses_reference else group.logits
        tensors = (group.logits, group.gram_matrices, a, group.sample_shares, reference_probs, group.y)
        batch_parts = zip(*(torch.split(tensor, width, 1) for tensor in tensors), strict=True)
        for logits, gram, a_batch, sample_shares, z, y in itertools.islice(batch_parts, steps):
            logits_now = torch.baddbmm(logits, gram, a, alpha=-lr)
            reference_z = z if objective.uses_reference else None
            gradient, cross_entropies = output_gradient_and_losses(objective, logits_now, y, reference_z, sample_shares)
            a_batch.add_(gradient)
            losses_by_step.append(cross_entropies)
        return torch.cat(losses_by_step, 1)

    def _primal_update(self, a: Tensor, x: Tensor, lr: float) -> Tensor:
        """Return the update of the flat model, [P]."""
        return self._add_primal(torch.zeros_like(self.trainer.worker.w), a, x, lr)

    @torch.no_grad()
    def _add_primal(self, out: Tensor, a: Tensor, x: Tensor, lr: float) -> Tensor:
        """Add (-lr A' X, -lr sum of A's rows) to `out`, [P], and return it."""
        weight, bias = self.trainer.worker.layout.parameters
        weight.of(out).addmm_(a.t(), x, alpha=-lr)
        bias.of(out).sub_(a.sum(0), alpha=lr)
        return out
