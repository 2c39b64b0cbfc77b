"""Local training of one client: the only loop that touches samples.

One network serves every client of a process: its parameters are views into a flat vector, so that a client costs one
copy, and its batches are slices of one gather; nothing is constructed per client but a permutation.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from fedcohort.augmentation.base import Augmentation
from fedcohort.client.base import Client
from fedcohort.codec.base import Codec
from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel
from fedcohort.hook import ClientContext, ClientHook, Correction, begin_all, finish_all, weigher
from fedcohort.objective.base import Objective
from fedcohort.rng import Rekeyed, generator, torch_scope
from fedcohort.training.chain import Chain, find_chain
from fedcohort.training.client_task import ClientTask
from fedcohort.training.evaluate import cross_entropy, mean_over_samples
from fedcohort.training.memory_layout import gather
from fedcohort.training.passes import Pieces, Seen, cut, deal, endless
from fedcohort.training.positions import on
from fedcohort.training.response import Response
from fedcohort.training.step import Corrected, Pass, Plain, Step, Stepwise
from fedcohort.training.upload import part
from fedcohort.training.weighted import Weighted
from fedcohort.types import ClientUpdate, Ids, UpdateGroup

Data = tuple[Tensor, Tensor, Tensor | None]  # inputs, labels, reference probabilities


class LocalTrainer:
    """Trains clients one after the other on `worker`, starting from `server`.

    hooks: all of them, `regularisers` those among them that change what is minimised; augmentation: of the samples.
    """

    def __init__(
        self,
        server: FlatModel,
        worker: FlatModel,
        federation: Federation,
        objective: Objective,
        client: Client,
        codec: Codec,
        hooks: Sequence[ClientHook],
        seed: int,
        closed_form: bool = True,
        regularisers: Sequence[ClientHook] = (),
        augmentation: Augmentation | None = None,
    ) -> None:
        self.server, self.worker, self.federation = server, worker, federation
        self.objective, self.client, self.codec = on(federation.targets, objective), client, codec
        self.hooks, self.seed = hooks, seed
        self.weighs = weigher(hooks) is not None
        self.augmentation = None if augmentation is None or augmentation.identity else augmentation
        closed_form &= federation.targets.single and not (federation.is_symbolic or worker.bf16 or self.weighs)
        self.chain = find_chain(worker, federation.scale) if closed_form else None
        self.response = Response(client, regularisers)
        self.rng = Rekeyed()
        self.watch: Callable[[Step], Step] = lambda step: step

    def together(self, tasks: Sequence[ClientTask]) -> Iterator[Sequence[ClientTask]]:
        """Group the tasks that are trained at once: each alone."""
        return ([task] for task in tasks)

    def updates(self, tasks: Sequence[ClientTask], down: Mapping[str, Tensor]) -> Iterator[ClientUpdate]:
        """Train one client after the other, and yield their updates in the order of the tasks."""
        for task in tasks:
            yield self.train(task, down)

    def train(self, task: ClientTask, down: Mapping[str, Tensor]) -> ClientUpdate:
        """Train `task.client` from the server's model; down: what the aggregator broadcast beside it."""
        self.worker.load(self.server)
        x, y = self.samples(task)
        reference = self.reference(x) if self.objective.uses_reference else None
        corrections = self.begin(task, down)
        data = (x, y, reference)
        # whatever the network: nothing tells that a module of a user's own draws
        with torch_scope(self.seed, "dropout", task.round, task.client):
            seen = self._fit(task, data, corrections)
        return self.update(task, self.worker.w - self.server.w, seen, corrections)

    def begin(self, task: ClientTask, down: Mapping[str, Tensor]) -> list[Correction]:
        """The hooks of one client's training."""
        rng = partial(self._rng_of, task)
        ctx = ClientContext(task.round, task.client, self.server.layout, rng, int(self.federation.n_train[task.client]))
        hooks = self.codec.hooks if task.plain else self.hooks
        return begin_all(hooks, self.server.w, down, task.stored, ctx)

    def _rng_of(self, task: ClientTask, purpose: str) -> np.random.Generator:
        return generator(self.seed, purpose, task.round, task.client)

    def update_of(self, round: int, client: int, rows: Ids | None = None) -> ClientUpdate:
        """Return what the client would send if it did all its work in this round.

        rows: positions of the samples that it would train on, None for all of T_k.
        """
        units = self.client.epochs if self.client.steps is None else self.client.steps
        return self.train(ClientTask(round, client, rows, units, units, self.client.lr_at(round), math.nan, {}), {})

    def samples(self, task: ClientTask) -> tuple[Tensor, Tensor]:
        x, y = self.federation.train.samples_of(task.client)
        if task.rows is None:
            return x, y
        rows = torch.from_numpy(task.rows).to(y.device)
        return gather(x, rows), y.index_select(0, rows)

    @torch.no_grad()
    def reference(self, x: Tensor) -> Tensor:
        """What the broadcast model makes of x: probabilities, [n, ..., classes]."""
        self.worker.network.eval()
        return F.softmax(self.worker.network(x), -1)

    def orders(self, task: ClientTask) -> Iterator[Ids]:
        """Positions of each mini-batch."""
        for order, pieces in self.passes(task, self.count(task)):
            for start, stop in pieces:
                yield order[start:stop]

    def count(self, task: ClientTask) -> int:
        """Samples that the client trains on."""
        offsets = self.federation.train.offsets
        return int(offsets[task.client + 1] - offsets[task.client]) if task.rows is None else len(task.rows)

    def passes(self, task: ClientTask, n: int) -> list[tuple[Ids, Pieces]]:
        """Passes over the samples, keyed by (seed, round, client), whoever else is selected."""
        rng = self.rng.rekey(self.seed, "batches", task.round, task.client)
        pieces = cut(n, self.client.batch or n, self.worker.has_batch_norm)
        steps = task.units if self.client.steps is not None else task.units * len(pieces)
        return deal(rng, n, pieces, steps)

    def _fit(self, task: ClientTask, data: Data, corrections: Sequence[Correction]) -> Seen:
        """Train `worker` on the task; each pass gathers its samples once, and its mini-batches are views of them."""
        x, y, z = data
        n = y.shape[0]
        alone = self.worker.has_batch_norm and n == 1  # the statistics of a single sample are undefined
        if self.worker.network.training == alone:
            self.worker.network.train(not alone)
        run, seen = self._pass(task, corrections), Seen(n)
        draws = self._rng_of(task, "augmentation") if self.augmentation is not None else None
        for order, pieces in self.passes(task, n):
            rows = torch.from_numpy(order).to(y.device)
            reference = None if z is None else z.index_select(0, rows)
            seen.add(
                order, pieces, run(self._augment(gather(x, rows), draws), y.index_select(0, rows), reference, pieces)
            )
        return seen

    def _augment(self, x: Tensor, draws: np.random.Generator | None) -> Tensor:
        """Return one pass's samples, changed; bytes become numbers first: padding is a number of the network's."""
        if self.augmentation is None or draws is None:
            return x
        scale = self.federation.scale
        return self.augmentation.change(x if scale is None else scale.numbers(x), draws)

    def _pass(self, task: ClientTask, corrections: Sequence[Correction]) -> Pass:
        """Choose the leanest pass that gives this method's numbers."""
        lr = task.lr
        if self.weighs and not task.plain:
            setup = (self.worker, self.objective, self.client, lr, corrections)
            return Stepwise(self.watch(Weighted(*setup, self._positions(task), self._validation(task))))
        if self.chain is not None:
            return Chain(self.worker, self.chain, self.objective, self.client, lr, corrections)
        if self.client.plain and not corrections:
            return Stepwise(self.watch(Plain(self.worker, self.objective, lr)))
        return Stepwise(self.watch(Corrected(self.worker, self.objective, self.client, lr, corrections)))

    def _positions(self, task: ClientTask) -> Iterator[Tensor]:
        """Yield the positions in T_k of each mini-batch's samples, as the steps come."""
        for order in self.orders(task):
            yield torch.from_numpy(order if task.rows is None else task.rows[order]).to(self.worker.w.device)

    def _validation(self, task: ClientTask) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield mini-batches of V_k without end, pass after pass, keyed by (seed, round, client)."""
        x, y = self.federation.val.samples_of(task.client)
        for order in endless(self._rng_of(task, "validation"), len(y), self.client.batch or len(y)):
            rows = torch.from_numpy(order).to(y.device)
            yield gather(x, rows), y.index_select(0, rows)

    @torch.no_grad()
    def update(
        self,
        task: ClientTask,
        delta: Tensor | Callable[[], Tensor],
        seen: Seen,
        corrections: Sequence[Correction],
        group: UpdateGroup | None = None,
    ) -> ClientUpdate:
        """Return what the client sends; `worker` holds its model where anything else than `delta` is read off it."""
        losses = seen.batch_loss
        worker = self.worker
        kept, told = ({}, {}) if task.remember is None else task.remember(seen.first)
        hooks = self.codec.hooks if task.plain else self.hooks
        results = finish_all(hooks, corrections, worker.w, len(losses), task.lr)
        return ClientUpdate(
            client=task.client,
            n_train=int(self.federation.n_train[task.client]),
            n_used=len(seen.first),
            steps=len(losses),
            response=self.response(len(losses), task.lr),
            units_done=task.units,
            units_asked=task.units_asked,
            lr=task.lr,
            vector=delta if self.sends_all(task) else self._transmit(task, delta() if callable(delta) else delta),
            buffers=worker.buffers.clone() if len(worker.buffers) else worker.buffers,
            counters=worker.counters.clone() if len(worker.counters) else worker.counters,
            uploads={name: vector for part in results for name, vector in part.uploads.items()},
            stored={**kept, **{name: vector for part in results for name, vector in part.stored.items()}},
            loss_report=told,
            batch_loss=losses,
            batch_size=seen.batch_size,
            sample_loss=seen.first,
            duration=task.duration,
            loss_after=self._loss_after(task),
            group=group,
        )

    def _loss_after(self, task: ClientTask) -> float:
        """Return the mean cross-entropy of `worker` on all of T_k, in nats; NaN where the task doesn't ask for it."""
        if not task.loss_after:
            return math.nan
        alone = np.array([task.client])
        (loss,) = mean_over_samples(self.worker.network, self.federation.train, alone, [cross_entropy])
        return float(loss[0])

    def sends_all(self, task: ClientTask) -> bool:
        """Return whether the server gets the whole update unchanged."""
        return task.tensor_mask is None and self.codec.identity

    def _transmit(self, task: ClientTask, delta: Tensor) -> Tensor:
        """Return the update that the server decodes, [P]; 0 in tensors that are not sent, which no codec encodes."""
        rng = partial(self._rng_of, task, "codec")
        if task.tensor_mask is None:
            return self.codec.transmit(delta, self.worker.layout, rng)
        out = torch.zeros_like(delta)
        if task.tensor_mask.any():
            fragment = part(self.worker.layout, task.tensor_mask)
            positions = fragment.positions.to(delta.device)
            out[positions] = self.codec.transmit(delta[positions], fragment.layout, rng)
        return out
