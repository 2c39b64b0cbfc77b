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
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from torch.nn import functional as F

from fedcohort.training.chain import onehot
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.passes import LossRecord, cut_into_batches
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
        self.simple = trainer.objective.plain

    @staticmethod
    def fits(trainer: LocalTrainer) -> bool:
        """Return whether the model is a single Linear layer and clients train by plain SGD without hooks."""
        linear = trainer.chain is not None and trainer.chain.is_linear
        return linear and trainer.client.plain and not trainer.hooks

    def group_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of consecutive tasks of one shape; a client's update does not depend on its group."""
        for shape, neighbours in itertools.groupby(tasks, self._shape):
            same_shape = list(neighbours)
            size = 1 if shape is None else min(self.chunk, ENTRIES // shape.rows**2)
            for start in range(0, len(same_shape), size):
                yield same_shape[start : start + size]

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train the clients, and yield their updates in the order of the tasks."""
        for group in self.group_tasks(tasks):
            shape = self._shape(group[0])
            if shape is None:
                yield from self.trainer.updates(group, down)
            else:
                yield from self._side_by_side(group, shape)

    def _shape(self, task: ClientTask) -> GroupShape | None:
        """Return the shape of a task; None if plain steps are faster because the client has too many samples."""
        trainer = self.trainer
        n, batch = trainer.count(task), trainer.client.batch
        steps = len(cut_into_batches(n, batch or n, False))
        width = batch if batch is not None and steps > 1 else -(-n // 8) * 8
        passes = task.units if trainer.client.steps is None else task.units / steps
        classes, inputs = self.layer.weight.shape
        multiplications = 4.0 * n * inputs * classes
        plain_s = passes * (multiplications / RATE + steps * STEP_S)
        dual_s = (multiplications + 2.0 * n * n * (inputs + passes * classes)) / RATE
        shape = GroupShape(steps, width, task.units)
        return shape if dual_s < plain_s and shape.rows**2 <= ENTRIES and task.units else None

    @torch.no_grad()
    def _side_by_side(self, tasks: Sequence[ClientTask], shape: GroupShape) -> Iterator[ClientUpdate]:
        trainer = self.trainer
        trainer.worker.load(trainer.server)
        samples = [trainer.samples(task) for task in tasks]
        inputs = [x.flatten(1) for x, _ in samples]
        group = self._gather(inputs, [y for _, y in samples], shape)
        a = torch.zeros_like(group.logits)
        records = [LossRecord(len(x)) for x in inputs]
        all_passes = [trainer.passes(task, len(x)) for task, x in zip(tasks, inputs, strict=True)]
        for passes in zip(*all_passes, strict=True):
            # Rows are brought into the order of the pass, so that its mini-batches are slices; A returns to its order.
            order = np.tile(np.arange(shape.rows), (len(tasks), 1))
            for row, (client_order, _) in zip(order, passes, strict=True):
                row[: len(client_order)] = client_order
            indices = torch.from_numpy(order).to(a.device)
            a_indices = indices[:, :, None].expand_as(a)
            a_in_order = a.gather(1, a_indices)
            table = self._pass(group.reorder(indices), a_in_order, shape.width, len(passes[0][1]), tasks[0].lr)
            a.scatter_(1, a_indices, a_in_order)
            for record, row, (client_order, pieces) in zip(records, table, passes, strict=True):
                record.add(client_order, pieces, row)
        update_group = self._group_updates(tasks, group.gram, a, inputs)
        for k, (task, x) in enumerate(zip(tasks, inputs, strict=True)):
            make = partial(self._primal, a[k, : len(x)], x, task.lr)
            delta = make() if task.loss_after else make
            if isinstance(delta, Tensor):
                torch.add(trainer.server.w, delta, out=trainer.worker.w)
            yield trainer.update(task, delta, records[k], (), update_group)

    def _group_updates(
        self, tasks: Sequence[ClientTask], gram: Tensor, a: Tensor, inputs: Sequence[Tensor]
    ) -> UpdateGroup | None:
        """Return the norms and the sum of updates without computing single updates.

        |lr A' X|^2 = lr^2 sum of A * (X X') A, where gram is X X' + 1 because of the bias. None if the server does not
        get all updates unchanged.
        """
        if not all(self.trainer.sends_all(task) for task in tasks):
            return None
        lr, place = tasks[0].lr, {task.client: k for k, task in enumerate(tasks)}
        squares = (a * torch.bmm(gram, a)).sum((1, 2), dtype=torch.float64)
        norms = dict(zip(place, (lr * squares.clamp(min=0).sqrt()).tolist(), strict=True))

        @torch.no_grad()
        def total(weights: Mapping[int, float]) -> Tensor:
            out = torch.zeros_like(self.trainer.worker.w)
            for client, share in weights.items():
                x = inputs[place[client]]
                self._add_primal(out, a[place[client], : len(x)], x, share * lr)
            return out

        return UpdateGroup(norms, total)

    def _gather(self, inputs: Sequence[Tensor], labels: Sequence[Tensor], shape: GroupShape) -> PaddedClients:
        """Compute the logits and the Gram matrix of each client's samples, with padding."""
        weight, bias, rows, k = self.layer.weight, self.layer.bias, shape.rows, len(inputs)
        classes = len(bias)
        logits, gram = weight.new_zeros(k, rows, classes), weight.new_zeros(k, rows, rows)
        y = torch.zeros(k, rows, dtype=torch.int64, device=weight.device)
        share = np.full((k, rows), 1.0 / shape.width)
        for i, (x, client_labels) in enumerate(zip(inputs, labels, strict=True)):
            n = x.shape[0]
            torch.addmm(bias, x, self.layer.transposed_weight, out=logits[i, :n])
            gram[i, :n, :n] = x @ x.t()
            y[i, :n] = client_labels
            last = (shape.steps - 1) * shape.width
            share[i, last:n], share[i, n:] = 1.0 / (n - last), 0.0
        return PaddedClients(logits, gram.add_(1.0), y, torch.from_numpy(share).to(weight))

    def _pass(self, group: PaddedClients, a: Tensor, width: int, steps: int, lr: float) -> Float64[np.ndarray, "k s"]:
        """Make one pass in the order of the rows, which changes `a`; return cross-entropies, [k, steps * width]."""
        targets = onehot(group.y, a.shape[2], a.dtype) if self.simple else group.logits.softmax(2)
        tensors = (group.logits, group.gram, a, group.share[:, :, None], targets, group.y)
        parts = zip(*(torch.split(tensor, width, 1) for tensor in tensors), strict=True)
        entropies = []
        for logits, gram, a_batch, share, target, y in itertools.islice(parts, steps):
            now = torch.baddbmm(logits, gram, a, alpha=-lr)
            if self.simple:
                logp = now.log_softmax(2)
                gradient = logp.exp().sub_(target).mul_(share)
                entropy = F.nll_loss(logp.flatten(0, 1), y.flatten(), reduction="none")
            else:
                now, y_flat, reference = now.flatten(0, 1), y.flatten(), target.flatten(0, 1)
                gradient, entropy = self._differentiate(now, y_flat, reference, share[:, :, 0])
            a_batch.add_(gradient.view_as(a_batch))
            entropies.append(entropy.view(y.shape))
        return torch.cat(entropies, 1).double().cpu().numpy()

    def _differentiate(self, logits: Tensor, y: Tensor, reference: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient of the clients' objectives with respect to the logits, and the cross-entropies."""
        objective = self.trainer.objective
        with torch.enable_grad():
            leaf = logits.requires_grad_()
            value, plain = objective.per_sample(leaf, y, reference if objective.uses_reference else None)
            means = (value.view_as(share) * share).sum(1)
            (gradient,) = torch.autograd.grad(objective.outer(means).sum(), leaf)
        return gradient, plain.detach()

    @torch.no_grad()
    def _primal(self, a: Tensor, x: Tensor, lr: float) -> Tensor:
        """Return the update of the flat model, [P]."""
        delta = torch.zeros_like(self.trainer.worker.w)
        self._add_primal(delta, a, x, lr)
        return delta

    def _add_primal(self, out: Tensor, a: Tensor, x: Tensor, lr: float) -> None:
        """Add (-lr A' X, -lr sum of A's rows) to `out`, [P]."""
        weight, bias = self.trainer.worker.layout.parameters
        weight.of(out).addmm_(a.t(), x, alpha=-lr)
        bias.of(out).sub_(a.sum(0), alpha=lr)
