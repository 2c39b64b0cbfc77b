"""Local training of one client: the only loop that touches samples.

One network serves every client of a process: its parameters are views into a flat vector, so that a client costs one
copy, and its batches are slices of one gather; nothing is constructed per client but a permutation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.codec.base import Codec
from fedcohort.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction, Hook
from fedcohort.objective.base import Objective
from fedcohort.rng import generator, torch_scope
from fedcohort.types import ClientUpdate, Ids


@dataclass(frozen=True)
class ClientTask:
    """One client's job. rows: positions of its samples, None for all of T_k. units: epochs (or steps) to do.

    duration: virtual seconds until its answer. stored: what it kept from earlier rounds.
    """

    round: int
    client: int
    rows: Ids | None
    units: int
    units_asked: int
    lr: float
    duration: float
    stored: Mapping[str, Tensor]


def cut(order: Tensor, batch: int, merge_last: bool) -> list[Tensor]:
    """`order` in mini-batches. merge_last: a last batch of one joins the one before it (batch norm needs two)."""
    parts = list(torch.split(order, batch))
    if merge_last and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


class LocalTrainer:
    """Trains clients one after the other on `worker`, starting from `server`."""

    def __init__(
        self,
        server: FlatModel,
        worker: FlatModel,
        federation: Federation,
        objective: Objective,
        client: Client,
        codec: Codec,
        hooks: Sequence[Hook],
        seed: int,
    ) -> None:
        self.server, self.worker, self.federation = server, worker, federation
        self.objective, self.client, self.codec, self.hooks, self.seed = objective, client, codec, hooks, seed
        self.tensors: list[Tensor] = list(worker.parameters)
        self.flat = torch.nn.Parameter(worker.w, requires_grad=True)
        self.flat.grad = worker.g
        self.fast = client.plain and not hooks

    def train(self, task: ClientTask, down: Mapping[str, Tensor]) -> ClientUpdate:
        """Train `task.client` from the server's model; down: what the aggregator broadcast beside it."""
        self.worker.load(self.server)
        x, y = self._samples(task)
        reference = self._reference(x)
        corrections = [hook.begin(self.server.w, down, task.stored) for hook in self.hooks]
        if self.worker.has_dropout:
            with torch_scope(self.seed, "dropout", task.round, task.client):
                losses, sizes = self._fit(task, x, y, reference, corrections)
        else:
            losses, sizes = self._fit(task, x, y, reference, corrections)
        return self._update(task, len(y), losses, sizes, corrections)

    def _samples(self, task: ClientTask) -> tuple[Tensor, Tensor]:
        x, y = self.federation.train.of(task.client)
        if task.rows is None:
            return x, y
        rows = torch.from_numpy(task.rows).to(y.device)
        return x.index_select(0, rows), y.index_select(0, rows)

    @torch.no_grad()
    def _reference(self, x: Tensor) -> Tensor | None:
        if not self.objective.uses_reference:
            return None
        self.worker.network.eval()
        return F.softmax(self.worker.network(x), 1)

    def _batches(self, task: ClientTask, n: int) -> Iterator[Tensor]:
        """Positions of each mini-batch; the order is keyed by (seed, round, client), whoever else is selected."""
        rng = generator(self.seed, "batches", task.round, task.client)
        size = self.client.batch or n
        left = task.units if self.client.steps is not None else None
        epochs = task.units if left is None else 10**9
        for _ in range(epochs):
            order = torch.from_numpy(rng.permutation(n)).to(self.federation.train.y.device)
            for part in cut(order, size, self.worker.has_batch_norm):
                if left is not None:
                    if left == 0:
                        return
                    left -= 1
                yield part

    def _fit(
        self,
        task: ClientTask,
        x: Tensor,
        y: Tensor,
        reference: Tensor | None,
        corrections: Sequence[Correction],
    ) -> tuple[list[Tensor], list[int]]:
        network = self.worker.network
        network.train()
        if self.worker.has_batch_norm and len(y) == 1:
            network.eval()  # the statistics of a single sample are undefined
        optimizer = None if self.client.plain else self.client.optimizer(self.flat, task.lr)
        losses: list[Tensor] = []
        sizes: list[int] = []
        for part in self._batches(task, len(y)):
            z = None if reference is None else reference.index_select(0, part)
            objective, ce = self.objective.per_sample(network(x.index_select(0, part)), y.index_select(0, part), z)
            loss = objective.mean()
            losses.append(loss.detach() if ce is objective else ce.detach().mean())
            sizes.append(len(part))
            if self.fast:
                grads = torch.autograd.grad(loss, self.worker.parameters)
                with torch.no_grad():
                    torch._foreach_add_(self.tensors, grads, alpha=-task.lr)
            else:
                self._step(loss, optimizer, task.lr, corrections)
        return losses, sizes

    def _step(
        self, loss: Tensor, optimizer: torch.optim.Optimizer | None, lr: float, corrections: Sequence[Correction]
    ) -> None:
        g, y = self.worker.g, self.worker.w
        g.zero_()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for correction in corrections:
                correction.correct(g, y)
            if self.client.clip is not None:
                g.mul_(torch.clamp(self.client.clip / (g.norm() + 1e-12), max=1.0))
            if optimizer is None:
                y.add_(g, alpha=-lr)
            else:
                optimizer.step()

    @torch.no_grad()
    def _update(
        self,
        task: ClientTask,
        n_used: int,
        losses: list[Tensor],
        sizes: list[int],
        corrections: Sequence[Correction],
    ) -> ClientUpdate:
        worker, layout = self.worker, self.worker.layout
        sent = [correction.finish(worker.w, len(losses), task.lr) for correction in corrections]
        delta = worker.w - self.server.w
        codec_rng = generator(self.seed, "codec", task.round, task.client)
        batch_loss = torch.stack(losses).double().cpu().numpy() if losses else np.empty(0)
        return ClientUpdate(
            client=task.client,
            n_train=int(self.federation.n_train[task.client]),
            n_used=n_used,
            steps=len(losses),
            units_done=task.units,
            units_asked=task.units_asked,
            lr=task.lr,
            delta=self.codec.transmit(delta, layout, codec_rng),
            buffers=worker.buffers.clone(),
            counters=worker.counters.clone(),
            uploads={name: vector for part in sent for name, vector in part.uploads.items()},
            stored={name: vector for part in sent for name, vector in part.stored.items()},
            batch_loss=batch_loss,
            batch_size=np.asarray(sizes, dtype=np.int64),
            duration=task.duration,
        )
