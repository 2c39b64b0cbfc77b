"""Local training of one client: the only loop that touches samples.

One network serves every client of a process: its parameters are views into a flat vector, so that a client costs one
copy, and its batches are slices of one gather; nothing is constructed per client but a permutation.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedcohort.client.base import Client
from fedcohort.codec.base import Codec
from fedcohort.engine.chain import Chain, layers_of
from fedcohort.engine.memory import gather
from fedcohort.engine.step import Corrected, Plain, Step
from fedcohort.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import Correction, Hook
from fedcohort.objective.base import Objective
from fedcohort.rng import generator, torch_scope
from fedcohort.types import ClientUpdate, Ids, Values

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
        self.chain = layers_of(worker) if closed_form and not worker.bf16 else None
        self.watch: Callable[[Step], Step] = lambda step: step

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """One client after the other, in the order of the tasks."""
        for task in tasks:
            yield self.train(task, down)

    def train(self, task: ClientTask, down: Mapping[str, Tensor]) -> ClientUpdate:
        """Train `task.client` from the server's model; down: what the aggregator broadcast beside it."""
        self.worker.load(self.server)
        x, y = self.samples(task)
        reference = self.reference(x)
        corrections = [hook.begin(self.server.w, down, task.stored) for hook in self.hooks]
        data = (x, y, reference)
        if self.worker.has_dropout:
            with torch_scope(self.seed, "dropout", task.round, task.client):
                losses, sizes = self._fit(task, data, corrections)
        else:
            losses, sizes = self._fit(task, data, corrections)
        table = torch.stack(losses).double().cpu().numpy() if losses else np.empty(0)
        return self.update(task, len(y), table, np.asarray(sizes, dtype=np.int64), corrections)

    def samples(self, task: ClientTask) -> tuple[Tensor, Tensor]:
        x, y = self.federation.train.of(task.client)
        if task.rows is None:
            return x, y
        rows = torch.from_numpy(task.rows).to(y.device)
        return gather(x, rows), y.index_select(0, rows)

    @torch.no_grad()
    def reference(self, x: Tensor) -> Tensor | None:
        if not self.objective.uses_reference:
            return None
        self.worker.network.eval()
        return F.softmax(self.worker.network(x), 1)

    def orders(self, task: ClientTask) -> Iterator[Tensor]:
        """Positions of each mini-batch; keyed by (seed, round, client), whoever else is selected."""
        for order, pieces in self._passes(task, self._count(task)):
            for start, stop in pieces:
                yield order[start:stop]

    def _count(self, task: ClientTask) -> int:
        offsets = self.federation.train.offsets
        return int(offsets[task.client + 1] - offsets[task.client]) if task.rows is None else len(task.rows)

    def _passes(self, task: ClientTask, n: int) -> Iterator[tuple[Tensor, list[tuple[int, int]]]]:
        """Passes over the samples: an order, and how it is cut; the last one ends where the work does."""
        rng = generator(self.seed, "batches", task.round, task.client)
        pieces = cut(n, self.client.batch or n, self.worker.has_batch_norm)
        left = task.units if self.client.steps is not None else task.units * len(pieces)
        while left > 0:
            order = torch.from_numpy(rng.permutation(n)).to(self.federation.train.y.device)
            yield order, pieces[:left]
            left -= len(pieces)

    def _batches(self, task: ClientTask, data: Data) -> Iterator[Data]:
        """One gather a pass, then views."""
        x_all, y_all, z_all = data
        for order, pieces in self._passes(task, len(y_all)):
            x, y = gather(x_all, order), y_all.index_select(0, order)
            z = None if z_all is None else z_all.index_select(0, order)
            for start, stop in pieces:
                yield x[start:stop], y[start:stop], None if z is None else z[start:stop]

    def _fit(self, task: ClientTask, data: Data, corrections: Sequence[Correction]) -> tuple[list[Tensor], list[int]]:
        network = self.worker.network
        network.train()
        if self.worker.has_batch_norm and len(data[1]) == 1:
            network.eval()  # the statistics of a single sample are undefined
        step = self.watch(self._step(task.lr, corrections))
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
    def update(
        self, task: ClientTask, n_used: int, losses: Values, sizes: Ids, corrections: Sequence[Correction]
    ) -> ClientUpdate:
        """What the client sends, read off `worker` after its last step."""
        worker, layout = self.worker, self.worker.layout
        sent = [correction.finish(worker.w, len(losses), task.lr) for correction in corrections]
        codec_rng = partial(generator, self.seed, "codec", task.round, task.client)
        return ClientUpdate(
            client=task.client,
            n_train=int(self.federation.n_train[task.client]),
            n_used=n_used,
            steps=len(losses),
            units_done=task.units,
            units_asked=task.units_asked,
            lr=task.lr,
            delta=self.codec.transmit(worker.w - self.server.w, layout, codec_rng),
            buffers=worker.buffers.clone() if len(worker.buffers) else worker.buffers,
            counters=worker.counters.clone() if len(worker.counters) else worker.counters,
            uploads={name: vector for part in sent for name, vector in part.uploads.items()},
            stored={name: vector for part in sent for name, vector in part.stored.items()},
            batch_loss=losses,
            batch_size=sizes,
            duration=task.duration,
        )
