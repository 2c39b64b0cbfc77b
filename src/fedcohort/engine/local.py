"""Local training of one client: the only loop that touches samples.

One network serves every client of a process: its parameters are views into a flat vector, so that a client costs one
copy, and its batches are slices of one gather; nothing is constructed per client but a permutation.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.codec.base import Codec
from fedcohort.engine.chain import Chain, layers_of
from fedcohort.engine.step import Corrected, Plain, Step
from fedcohort.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction, Hook
from fedcohort.objective.base import Objective
from fedcohort.rng import generator, torch_scope
from fedcohort.types import ClientUpdate, Ids

Data = tuple[Tensor, Tensor, Tensor | None]  # inputs, labels, reference probabilities


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


def cut(n: int, batch: int, merge_last: bool) -> list[tuple[int, int]]:
    """[0, n) in pieces of `batch`. merge_last: a last piece of one joins the one before it (batch norm needs two)."""
    starts = list(range(0, n, batch))
    if merge_last and len(starts) > 1 and n - starts[-1] == 1:
        starts.pop()
    return list(itertools.pairwise([*starts, n]))


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
        closed_form: bool = True,
    ) -> None:
        self.server, self.worker, self.federation = server, worker, federation
        self.objective, self.client, self.codec, self.hooks, self.seed = objective, client, codec, hooks, seed
        self.chain = layers_of(worker) if closed_form else None

    def train(self, task: ClientTask, down: Mapping[str, Tensor]) -> ClientUpdate:
        """Train `task.client` from the server's model; down: what the aggregator broadcast beside it."""
        self.worker.load(self.server)
        x, y = self._samples(task)
        reference = self._reference(x)
        corrections = [hook.begin(self.server.w, down, task.stored) for hook in self.hooks]
        data = (x, y, reference)
        if self.worker.has_dropout:
            with torch_scope(self.seed, "dropout", task.round, task.client):
                losses, sizes = self._fit(task, data, corrections)
        else:
            losses, sizes = self._fit(task, data, corrections)
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

    def _batches(self, task: ClientTask, data: Data) -> Iterator[Data]:
        """Mini-batches; their order is keyed by (seed, round, client), whoever else is selected."""
        rng = generator(self.seed, "batches", task.round, task.client)
        n = len(data[1])
        size, steps = self.client.batch or n, self.client.steps is not None
        left = task.units
        while left > 0:
            order = torch.from_numpy(rng.permutation(n)).to(data[1].device)
            x, y, z = (None if part is None else part.index_select(0, order) for part in data)
            for start, stop in cut(n, size, self.worker.has_batch_norm):
                rows = slice(start, stop)
                yield x[rows], y[rows], None if z is None else z[rows]  # type: ignore[index]
                left -= steps
                if left == 0:
                    return
            left -= not steps

    def _fit(self, task: ClientTask, data: Data, corrections: Sequence[Correction]) -> tuple[list[Tensor], list[int]]:
        network = self.worker.network
        network.train()
        if self.worker.has_batch_norm and len(data[1]) == 1:
            network.eval()  # the statistics of a single sample are undefined
        step = self._step(task.lr, corrections)
        losses: list[Tensor] = []
        sizes: list[int] = []
        for x, y, z in self._batches(task, data):
            losses.append(step(x, y, z))
            sizes.append(len(y))
        return losses, sizes

    def _step(self, lr: float, corrections: Sequence[Correction]) -> Step:
        """The leanest step that gives this method's numbers."""
        if self.chain is not None:
            return Chain(self.worker, self.chain, self.objective, self.client, lr, corrections)
        if self.client.plain and not corrections:
            return Plain(self.worker, self.objective, lr)
        return Corrected(self.worker, self.objective, self.client, lr, corrections)

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
        codec_rng = partial(generator, self.seed, "codec", task.round, task.client)
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
            buffers=worker.buffers.clone() if len(worker.buffers) else worker.buffers,
            counters=worker.counters.clone() if len(worker.counters) else worker.counters,
            uploads={name: vector for part in sent for name, vector in part.uploads.items()},
            stored={name: vector for part in sent for name, vector in part.stored.items()},
            batch_loss=batch_loss,
            batch_size=np.asarray(sizes, dtype=np.int64),
            duration=task.duration,
        )
