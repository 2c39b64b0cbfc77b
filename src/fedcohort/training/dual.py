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

from fedcohort.training.chain import differentiate
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.passes import Passes
from fedcohort.training.transfer import Results, finish_in_blocks, to_device
from fedcohort.types import ClientUpdate, UpdateGroup

RATE = 5e10  # FLOPs per second of a small matrix product; RATE and STEP_S only decide between dual and plain steps
STEP_S = 6e-5  # seconds of a mini-batch step apart from its matrix products
ENTRIES = 2**20  # largest number of entries of all Gram matrices in memory


@dataclass(frozen=True)
class GroupShape:
    """Properties that clients must share to be trained at once.

    Attributes:
        steps: number of steps of one pass.
        width: number of samples of a step, with padding.
        units: epochs or steps of the job.
    """

    steps: int
    width: int
    units: int

    @property
    def rows(self) -> int:
        return self.steps * self.width


@dataclass(frozen=True)
class GroupPlan:
    """Clients of one shape that are trained at once.

    Attributes:
        passes: passes of each client.
        arrays: order of the rows in each pass [passes, k, rows], numbers of samples [k], and `ClientTask.rows` of each
            client that does not train on all of its samples.
    """

    tasks: Sequence[ClientTask]
    shape: GroupShape
    passes: Sequence[Passes]
    arrays: Sequence[np.ndarray]


@dataclass(frozen=True)
class PaddedClients:
    """Samples of several clients, padded to the same number of rows.

    Attributes:
        logits: X W_t' + b_t of each client.
        gram: X X' + 1 of each client.
        y: labels.
        share: 1 over the size of the mini-batch at this row, 0 for padding.
    """

    logits: Float[Tensor, "k rows c"]
    gram: Float[Tensor, "k rows rows"]
    y: Int64[Tensor, "k rows"]
    share: Float[Tensor, "k rows"]

    def reorder(self, order: Int64[Tensor, "k rows"]) -> "PaddedClients":
        """Return the samples in another order, with the same mini-batches of rows."""
        down, across = order[:, :, None], order[:, None, :]
        gram = self.gram.gather(1, down.expand_as(self.gram))
        return PaddedClients(
            self.logits.gather(1, down.expand_as(self.logits)),
            gram.gather(2, across.expand_as(gram)),
            self.y.gather(1, order),
            self.share,
        )


class Dual:
    """Trains up to `chunk` clients of one shape at a time, or one after the other if that is faster."""

    def __init__(self, trainer: LocalTrainer, chunk: int) -> None:
        if trainer.chain is None or not trainer.chain.is_linear:
            raise ValueError("the dual engine needs a model with a single linear layer")
        self.trainer, self.chunk, self.layer = trainer, chunk, trainer.chain.layers[0]

    @staticmethod
    def fits(trainer: LocalTrainer) -> bool:
        """Return whether the model is a single Linear layer and clients train by plain SGD without hooks."""
        linear = trainer.chain is not None and trainer.chain.is_linear
        return linear and trainer.client.plain and not trainer.hooks

    def group_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of consecutive tasks of one shape; a client's update does not depend on its group."""
        for shape, group in self._shaped_groups(tasks):
            yield from ([task] for task in group) if shape is None else [group]

    def _shaped_groups(self, tasks: Sequence[ClientTask]) -> Iterator[tuple[GroupShape | None, Sequence[ClientTask]]]:
        """Yield groups of consecutive tasks with their shape, which is None for clients that are trained one by one."""
        for shape, neighbours in itertools.groupby(tasks, self._shape):
            same_shape = list(neighbours)
            size = len(same_shape) if shape is None else min(self.chunk, ENTRIES // shape.rows**2)
            for start in range(0, len(same_shape), size):
                yield shape, same_shape[start : start + size]

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train the clients, and yield their updates in the order of the tasks."""
        return finish_in_blocks(self._train_groups(tasks, down), self.layer.weight.device)

    def _train_groups(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[Results]:
        groups = list(self._shaped_groups(tasks))
        plans = [None if shape is None else self._plan(group, shape) for shape, group in groups]
        arrays = [array for plan in plans if plan is not None for array in plan.arrays]
        tensors = to_device(arrays, self.layer.weight.device)
        for (_, group), plan in zip(groups, plans, strict=True):
            if plan is None:
                yield from self.trainer.train_each(group, down)
            else:
                yield self._train_group(plan, *(next(tensors) for _ in plan.arrays))

    def _shape(self, task: ClientTask) -> GroupShape | None:
        """Return the shape of a task; None if plain steps are faster because the client has too many samples."""
        trainer = self.trainer
        n, batch = trainer.count(task), trainer.client.batch
        steps = -(-n // (batch or n))
        width = batch if batch is not None and steps > 1 else -(-n // 8) * 8
        passes = task.units if trainer.client.steps is None else task.units / steps
        classes, inputs = self.layer.weight.shape
        multiplications = 4.0 * n * inputs * classes
        plain_s = passes * (multiplications / RATE + steps * STEP_S)
        dual_s = (multiplications + 2.0 * n * n * (inputs + passes * classes)) / RATE
        shape = GroupShape(steps, width, task.units)
        return shape if dual_s < plain_s and shape.rows**2 <= ENTRIES and task.units else None

    def _plan(self, tasks: Sequence[ClientTask], shape: GroupShape) -> GroupPlan:
        all_passes = [self.trainer.passes(task) for task in tasks]
        orders = np.tile(np.arange(shape.rows), (len(all_passes[0]), len(tasks), 1))
        for k, passes in enumerate(all_passes):
            for p, (order, _) in enumerate(passes):
                orders[p, k, : len(order)] = order
        counts = np.array([self.trainer.count(task) for task in tasks])
        chosen = [task.rows for task in tasks if task.rows is not None]
        return GroupPlan(tasks, shape, all_passes, [orders, counts, *chosen])

    @torch.no_grad()
    def _train_group(self, plan: GroupPlan, orders: Tensor, counts: Tensor, *chosen: Tensor) -> Results:
        """Train the clients of a plan; the other arguments are its arrays on the device."""
        trainer, rows = self.trainer, iter(chosen)
        trainer.worker.load(trainer.server)
        samples = [trainer.samples(task, None if task.rows is None else next(rows)) for task in plan.tasks]
        samples = [(x.flatten(1), y) for x, y in samples]
        inputs, group = [x for x, _ in samples], self._gather(samples, plan.shape, counts)
        a, tables = torch.zeros_like(group.logits), []
        for p, order in enumerate(orders.long()):
            # Rows are brought into the order of the pass, so that its mini-batches are slices; A returns to its order.
            a_indices = order[:, :, None].expand_as(a)
            a_in_order = a.gather(1, a_indices)
            steps = len(plan.passes[0][p][1])
            tables.append(self._pass(group.reorder(order), a_in_order, plan.shape.width, steps, plan.tasks[0].lr))
            a.scatter_(1, a_indices, a_in_order)
        update_group = self._group_updates(plan.tasks, group.gram, a, inputs)
        results = []
        for k, (task, x, passes) in enumerate(zip(plan.tasks, inputs, plan.passes, strict=True)):
            make = partial(self._primal, a[k, : len(x)], x, task.lr)
            delta = make() if task.loss_after or update_group is None else make
            if isinstance(delta, Tensor):
                torch.add(trainer.server.w, delta, out=trainer.worker.w)
            losses = [table[k, : pieces[-1][1]] for table, (_, pieces) in zip(tables, passes, strict=True)]
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
        lr, place = tasks[0].lr, {task.client: k for k, task in enumerate(tasks)}
        squares = (a * torch.bmm(gram, a)).sum((1, 2), dtype=torch.float64)

        def total(weights: Mapping[int, float]) -> Tensor:
            out = torch.zeros_like(self.trainer.worker.w)
            for client, share in weights.items():
                x = inputs[place[client]]
                self._add_primal(out, a[place[client], : len(x)], x, share * lr)
            return out

        return UpdateGroup(len(tasks), total), lr * squares.clamp(min=0).sqrt()

    def _gather(self, samples: Sequence[tuple[Tensor, Tensor]], shape: GroupShape, counts: Tensor) -> PaddedClients:
        """Compute the logits and the Gram matrix of each client's samples, with padding; counts: samples of each."""
        weight, bias, rows, k = self.layer.weight, self.layer.bias, shape.rows, len(samples)
        logits, gram = weight.new_zeros(k, rows, len(bias)), weight.new_zeros(k, rows, rows)
        y = torch.zeros(k, rows, dtype=torch.int64, device=weight.device)
        for i, (x, client_labels) in enumerate(samples):
            n = x.shape[0]
            torch.addmm(bias, x, self.layer.transposed_weight, out=logits[i, :n])
            torch.mm(x, x.t(), out=gram[i, :n, :n])
            y[i, :n] = client_labels
        last, row = (shape.steps - 1) * shape.width, torch.arange(rows, device=weight.device)
        share = torch.where(row < last, 1.0 / shape.width, 1.0 / (counts[:, None] - last).double())
        return PaddedClients(logits, gram.add_(1.0), y, (share * (row < counts[:, None])).to(weight))

    def _pass(self, group: PaddedClients, a: Tensor, width: int, steps: int, lr: float) -> Float[Tensor, "k s"]:
        """Make one pass in the order of the rows, which changes `a`; return cross-entropies, [k, steps * width]."""
        objective, entropies = self.trainer.objective, []
        reference = group.logits.softmax(2) if objective.uses_reference else group.logits
        tensors = (group.logits, group.gram, a, group.share, reference, group.y)
        parts = zip(*(torch.split(tensor, width, 1) for tensor in tensors), strict=True)
        for logits, gram, a_batch, share, z, y in itertools.islice(parts, steps):
            now = torch.baddbmm(logits, gram, a, alpha=-lr)
            gradient, entropy = differentiate(objective, now, y, z if objective.uses_reference else None, share)
            a_batch.add_(gradient)
            entropies.append(entropy)
        return torch.cat(entropies, 1)

    def _primal(self, a: Tensor, x: Tensor, lr: float) -> Tensor:
        """Return the update of the flat model, [P]."""
        return self._add_primal(torch.zeros_like(self.trainer.worker.w), a, x, lr)

    @torch.no_grad()
    def _add_primal(self, out: Tensor, a: Tensor, x: Tensor, lr: float) -> Tensor:
        """Add (-lr A' X, -lr sum of A's rows) to `out`, [P], and return it."""
        weight, bias = self.trainer.worker.layout.parameters
        weight.of(out).addmm_(a.t(), x, alpha=-lr)
        bias.of(out).sub_(a.sum(0), alpha=lr)
        return out
