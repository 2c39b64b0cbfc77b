"""Adding up what clients send, one by one in float64 in the order given, over ranks by one all-reduce.

Never by slice subtotals: the sum is bit-equal for any number of slices (DESIGN 9.5). A client that sends
something that is not finite, or a longer update than allowed, is left out and counted; the others' weights are
renormalised.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.types import ClientUpdate, Ids, Values

PIECE = 131_072  # numbers of an update that are added at a time on a CPU

Reduce = Callable[[Tensor], Tensor]  # sums a tensor over ranks


@dataclass(frozen=True)
class Each:
    """What came from each client beside its update, in the order of `Gathered.clients`; kept where the matrix is.

    used: samples trained on, [m]. buffers: float64 [m, B]. counters: int64 [m, I]. uploads: float64 [m, P] by name.
    averaged: names of those that are weighed as updates are. means, variances: of batch norm, where buffers are
    averaged by second moments.
    """

    used: Values
    buffers: Tensor
    counters: Tensor
    uploads: Mapping[str, Tensor]
    averaged: Collection[str]
    means: Tensor
    variances: Tensor

    def mean_buffers(self, kept: Tensor) -> Tensor:
        """Of the clients in `kept`, bool [m], by their samples."""
        used, rows = torch.from_numpy(self.used).to(self.buffers)[kept], self.buffers[kept]
        rows[:, self.variances] += rows[:, self.means] ** 2
        mean: Tensor = used @ rows / used.sum()
        mean[self.variances] -= mean[self.means] ** 2
        return mean


@dataclass(frozen=True)
class Gathered:
    """Everything that arrived and is finite, in the order of `clients` (sorted ids).

    mean, totals, buffers, counters, updates: see `agg.base.Arrived`; None where nobody arrived. weights: normalised.
    reports: one float64 column per word asked for. dropped: ids whose update was left out. each: beside the matrix of
    updates. held: what the server worked out of the updates, by word of `signal/`. step_dropped: whether the server's
    step could not be taken, and the model is what it was.
    """

    clients: Ids
    dropped: Ids
    mean: Tensor | None
    totals: Mapping[str, Tensor]
    buffers: Tensor | None
    counters: Tensor | None
    weights: Values
    updates: Tensor | None
    reports: Mapping[str, Values]
    stored: Mapping[int, Mapping[str, Tensor]]
    each: Each | None = None
    held: Mapping[str, Any] = field(default_factory=dict)
    step_dropped: bool = False

    @property
    def each_buffers(self) -> Tensor | None:
        """Float64 [m, B]."""
        return None if self.each is None else self.each.buffers


class Gatherer:
    """Collects one round's updates on this rank.

    cohort: sorted ids of all that train this round, over all ranks. weights: their raw weights, aligned.
    uploads: names of the vectors that hooks send. remembers: floats of each that they keep, a shorter one is padded.
    averaged: those of the uploads that are weighed as updates are. words: the columns to keep, each a function of an
    update. stacked: keep the matrix of updates too. moments: average batch-norm variances by second moments.
    ranks: processes that share the cohort. longest: the largest norm of an update that is let in. dtype: of what hooks
    keep, the model's: a rank that none of it is trained on knows no other.
    """

    def __init__(
        self,
        layout: Layout,
        cohort: Ids,
        weights: Values,
        uploads: Sequence[str],
        remembers: Mapping[str, int],
        words: Mapping[str, Callable[[ClientUpdate], float]],
        stacked: bool,
        moments: bool,
        device: torch.device,
        ranks: int,
        longest: float = math.inf,
        averaged: Collection[str] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        def zeros(*size: int) -> Tensor:
            return torch.zeros(size, dtype=torch.float64, device=device)

        self.cohort, self.weights, self.words = cohort, weights, words
        self.remembers, self.ranks, self.longest = remembers, ranks, longest
        self.averaged, self.dtype = averaged, dtype
        self.row = {int(client): row for row, client in enumerate(cohort)}
        self.sum = zeros(layout.n_params)
        self.totals = {name: zeros(layout.n_params) for name in uploads}
        self.buffers = zeros(layout.n_buffers)
        self.counters = torch.zeros(sum(b.size for b in layout.counters), dtype=torch.int64, device=device)
        blank = zeros if ranks > 1 else partial(torch.empty, dtype=torch.float64, device=device)
        self.matrix = (
            blank(len(cohort), layout.n_params) if stacked else None
        )  # who sends nothing has no row in the end
        self.piece = PIECE if device.type == "cpu" else max(1, layout.n_params)
        self.wide = torch.empty(self.piece, dtype=torch.float64, device=device)
        self.each_buffers = zeros(len(cohort), layout.n_buffers) if stacked else None
        self.each_counters = self.counters.new_zeros(len(cohort) if stacked else 0, len(self.counters))
        self.each_upload = {name: blank(len(cohort), layout.n_params) for name in uploads} if stacked else {}
        self.table = np.zeros((len(cohort), 2 + len(words)))
        self.stored: dict[int, Mapping[str, Tensor]] = {}
        means, variances = layout.batch_norm() if moments else (torch.empty(0, dtype=torch.int64),) * 2
        self.means, self.variances = means.to(device), variances.to(device)

    def add(self, update: ClientUpdate) -> None:
        row = self.row[update.client]
        if not self._sound(update):
            return
        weight = float(self.weights[row])
        self.table[row, 0], self.table[row, 1] = 1.0, update.n_used
        self.table[row, 2:] = [read(update) for read in self.words.values()]
        self._add(self.sum, update.delta, weight, None if self.matrix is None else self.matrix[row])
        for name, total in self.totals.items():
            own = self.each_upload[name][row] if name in self.each_upload else None
            self._add(total, update.uploads[name], weight if name in self.averaged else 1.0, own)
        if len(self.buffers):
            buffers = update.buffers.double()
            if self.each_buffers is not None:
                self.each_buffers[row] = buffers
            buffers[self.variances] += buffers[self.means] ** 2
            self.buffers.add_(buffers, alpha=float(update.n_used))
        if len(self.counters):
            self.counters = torch.maximum(self.counters, update.counters)
            if len(self.each_counters):
                self.each_counters[row] = update.counters
        self.stored[update.client] = update.stored

    def _add(self, total: Tensor, vector: Tensor, weight: float, row: Tensor | None = None) -> None:
        """weight x vector to the total, and the vector into its row, in pieces that a processor's cache holds."""
        for start in range(0, len(total), self.piece):
            part = vector[start : start + self.piece]
            wide = self.wide[: len(part)] if row is None else row[start : start + self.piece]
            total[start : start + self.piece].add_(wide.copy_(part), alpha=weight)

    def _sound(self, update: ClientUpdate) -> bool:
        """A norm is finite where all entries are, and don't overflow."""
        norm = float(torch.linalg.vector_norm(update.delta))
        beside = (*update.uploads.values(), update.buffers)
        rest = all(math.isfinite(float(torch.linalg.vector_norm(vector))) for vector in beside if len(vector))
        return math.isfinite(norm) and norm <= self.longest and rest

    def finish(self, reduce: Reduce, reduce_max: Reduce) -> Gathered:
        """Sum over ranks; every rank gets the same result."""
        table = reduce(torch.from_numpy(self.table)).numpy()
        here = table[:, 0] > 0
        raw = np.where(here, self.weights, 0.0)
        total = float(raw.sum())
        alive = bool(here.any()) and total > 0
        buffers = reduce(self.buffers) / max(float(table[here, 1].sum()), 1.0)
        buffers[self.variances] -= buffers[self.means] ** 2
        rows = torch.from_numpy(np.flatnonzero(here))
        return Gathered(
            clients=self.cohort[here],
            dropped=self.cohort[~here],
            mean=reduce(self.sum) / total if alive else None,
            totals={name: self._total(name, reduce(vector), total) for name, vector in self.totals.items()},
            buffers=buffers if alive else None,
            counters=reduce_max(self.counters) if alive else None,
            weights=raw[here] / total if alive else np.zeros(int(here.sum())),
            updates=self._arrived(reduce(self.matrix), rows) if self.matrix is not None else None,
            reports={word: table[here, 2 + i].copy() for i, word in enumerate(self.words)},
            stored=self._stored(reduce),
            each=self._each(table[here, 1].copy(), rows, reduce, reduce_max),
        )

    def _each(self, used: Values, rows: Tensor, reduce: Reduce, reduce_max: Reduce) -> Each | None:
        if self.each_buffers is None:
            return None
        return Each(
            used,
            self._arrived(reduce(self.each_buffers), rows),
            self._arrived(reduce_max(self.each_counters), rows),
            {name: self._arrived(reduce(matrix), rows) for name, matrix in self.each_upload.items()},
            self.averaged,
            self.means,
            self.variances,
        )

    def _arrived(self, matrix: Tensor, rows: Tensor) -> Tensor:
        """Those rows; the matrix itself where they are all."""
        return matrix if len(rows) == len(matrix) else matrix[rows.to(matrix.device)]

    def _total(self, name: str, vector: Tensor, weights: float) -> Tensor:
        return vector / weights if name in self.averaged and weights > 0 else vector

    def _stored(self, reduce: Reduce) -> Mapping[int, Mapping[str, Tensor]]:
        """Every rank keeps what every client remembers: next round another rank may train it."""
        if self.ranks == 1 or not self.remembers:
            return self.stored
        shared = {}
        for name, size in self.remembers.items():
            matrix = torch.zeros((len(self.cohort), size), dtype=self.dtype, device=self.sum.device)
            for client, kept in self.stored.items():
                matrix[self.row[client], : len(kept[name])] = kept[name]
            shared[name] = reduce(matrix)
        return {int(k): {name: shared[name][i].clone() for name in shared} for k, i in self.row.items()}


def reweighted(gathered: Gathered, weights: Float64[np.ndarray, "m"], absolute: bool = False) -> Gathered:
    """The same arrivals under other weights (a selector's Advice), normalised unless absolute; needs the matrix.

    Who weighs nothing counts as one that didn't arrive: in the sums of what hooks upload, in buffers and counters.
    Where nobody weighs anything nothing is left to aggregate, and there is no mean.
    """
    if gathered.updates is None or gathered.each is None:
        raise ValueError("other weights need the matrix of updates")
    if not weights.any():
        return replace(gathered, mean=None, buffers=None, counters=None, weights=np.zeros(len(weights)))
    share = weights if absolute else weights / weights.sum()
    p, each = torch.from_numpy(share).to(gathered.updates), gathered.each
    totals = dict(gathered.totals) | {name: p @ each.uploads[name] for name in each.averaged}
    found = replace(gathered, mean=p @ gathered.updates, totals=totals, weights=share)
    if (weights > 0).all():
        return found
    kept = p > 0
    totals |= {name: matrix[kept].sum(0) for name, matrix in each.uploads.items() if name not in each.averaged}
    return replace(found, totals=totals, buffers=each.mean_buffers(kept), counters=each.counters[kept].amax(0))
