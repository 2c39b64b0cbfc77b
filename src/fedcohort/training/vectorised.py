"""The vectorised engine: stacked flat parameters of several clients under torch.func.vmap, with padded mini-batches.

Each client has its order of samples and its number of steps, and gets the same model as if it were trained alone, up to
rounding. This is faster if launching a kernel takes longer than its work: for small models on a GPU.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from fedcohort.hook import Correction
from fedcohort.training.client_task import ClientTask
from fedcohort.training.local import LocalTrainer
from fedcohort.training.memory_layout import gather
from fedcohort.training.passes import LossRecord
from fedcohort.types import ClientUpdate


@dataclass(frozen=True)
class BatchPlan:
    """The samples of each mini-batch of several clients.

    Attributes:
        positions: positions of the samples in the client's T_k, [steps, clients, batch].
        rows: positions of the samples in the tensor of all clients.
        mask: 1 for a sample, 0 for padding.
    """

    positions: Int64[Tensor, "s k b"]
    rows: Int64[Tensor, "s k b"]
    mask: Float[Tensor, "s k b"]


class Vectorised:
    """Trains `chunk` clients at a time; it does not support batch norm, dropout and recurrent layers."""

    def __init__(self, trainer: LocalTrainer, chunk: int) -> None:
        self.trainer, self.chunk = trainer, chunk
        self.blocks = trainer.worker.layout.parameters
        self.gradient = vmap(grad_and_value(self._loss, has_aux=True), in_dims=(0, 0, 0, 0, 0))

    def group_tasks(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Yield groups of `chunk` consecutive tasks, which have similar sizes, as tasks are sorted by size."""
        return (tasks[start : start + self.chunk] for start in range(0, len(tasks), self.chunk))

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train each group side by side, and yield the updates in the order of the tasks."""
        for group in self.group_tasks(tasks):
            yield from self._side_by_side(group, down)

    def _loss(self, w: Tensor, x: Tensor, y: Tensor, mask: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        views = {block.name: block.of(w) for block in self.blocks}
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.trainer.worker.bf16):
            logits = functional_call(self.trainer.worker.network, views, (x,)).to(w.dtype)
        objective = self.trainer.objective
        value, ce = objective.per_sample(logits, y, z if objective.uses_reference else None)
        count = mask.sum().clamp(min=1.0)
        return objective.outer((value * mask).sum() / count), ce.detach()

    def _plan(self, tasks: Sequence[ClientTask]) -> BatchPlan:
        trainer = self.trainer
        orders = [list(trainer.orders(task)) for task in tasks]
        steps, width = max(len(o) for o in orders), max(len(part) for o in orders for part in o)
        shape = (steps, len(tasks), width)
        positions, rows = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
        mask = torch.zeros(shape, dtype=trainer.server.w.dtype)
        for k, (task, order) in enumerate(zip(tasks, orders, strict=True)):
            first = int(trainer.federation.train.offsets[task.client])
            chosen = None if task.rows is None else torch.from_numpy(task.rows)
            for s, part in enumerate(order):
                samples = torch.from_numpy(part)
                positions[s, k, : len(samples)] = samples
                rows[s, k, : len(samples)] = first + (samples if chosen is None else chosen[samples])
                mask[s, k, : len(samples)] = 1.0
        device = trainer.server.w.device
        return BatchPlan(positions.to(device), rows.to(device), mask.to(device))

    def _references(self, tasks: Sequence[ClientTask]) -> Tensor:
        """Return w_t's probabilities of each client's samples, padded, [clients, samples, classes]; zeros if unused."""
        if not self.trainer.objective.uses_reference:
            return torch.zeros((len(tasks), 1, 1), device=self.trainer.server.w.device)
        self.trainer.worker.load(self.trainer.server)
        probabilities = [self.trainer.reference(self.trainer.samples(task)[0]) for task in tasks]
        return torch.nn.utils.rnn.pad_sequence(probabilities, batch_first=True)

    def _side_by_side(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> list[ClientUpdate]:
        trainer, data = self.trainer, self.trainer.federation.train
        plan, z = self._plan(tasks), self._references(tasks)
        trainer.worker.network.train()
        w = trainer.server.w.expand(len(tasks), -1).clone()
        starts = [trainer.begin(task, down) for task in tasks]
        lr = tasks[0].lr
        flat = torch.nn.Parameter(w)
        optimizer = None if trainer.client.plain else trainer.client.optimizer(flat, lr)
        client_rows = torch.arange(len(tasks), device=w.device)[:, None]
        losses = []
        for s in range(len(plan.mask)):
            rows, mask = plan.rows[s], plan.mask[s]
            x = gather(data.x, rows.flatten()).reshape(*rows.shape, *data.x.shape[1:])
            reference = z[client_rows, plan.positions[s]] if trainer.objective.uses_reference else z
            g, (_, ce) = self.gradient(w, x, data.y[rows], mask, reference)
            self._move(g, w, mask.any(1), starts, flat, optimizer, lr)
            losses.append(ce)
        table = torch.stack(losses).double().cpu()
        return [self._update(k, task, w[k], plan, table, starts[k]) for k, task in enumerate(tasks)]

    @torch.no_grad()
    def _move(
        self,
        g: Tensor,
        w: Tensor,
        active: Tensor,
        starts: Sequence[Sequence[Correction]],
        flat: torch.nn.Parameter,
        optimizer: torch.optim.Optimizer | None,
        lr: float,
    ) -> None:
        """Make one step of all clients in place; clients that have completed their steps are not active.

        Args:
            g: gradients, [clients, P].
            w: models, [clients, P].
            active: whether the client has a mini-batch in this step, bool [clients].
            starts: corrections of each client's gradient.
            flat: `w` as the optimizer's parameter.
            optimizer: the clients' optimizer, None for plain SGD.
            lr: learning rate.
        """
        if starts[0]:
            for k, corrections in enumerate(starts):
                if active[k]:
                    for correction in corrections:
                        correction.correct(g[k], w[k])
        clip = self.trainer.client.clip
        if clip is not None:
            g = g * torch.clamp(clip / (g.norm(dim=1, keepdim=True) + 1e-12), max=1.0)
        if optimizer is None:
            w.add_(g * active[:, None], alpha=-lr)
            return
        before = w.clone()
        flat.grad = g
        optimizer.step()
        w.copy_(torch.where(active[:, None], w, before))

    def _update(
        self, k: int, task: ClientTask, w: Tensor, plan: BatchPlan, table: Tensor, corrections: Sequence[Correction]
    ) -> ClientUpdate:
        trainer = self.trainer
        n = trainer.count(task)
        record, step = LossRecord(n), 0
        for order, pieces in trainer.passes(task, n):
            rows = [table[step + i, k, : stop - start] for i, (start, stop) in enumerate(pieces)]
            record.add(order, pieces, torch.cat(rows).numpy())
            step += len(pieces)
        trainer.worker.w.copy_(w)
        return trainer.update(task, w - trainer.server.w, record, corrections)
