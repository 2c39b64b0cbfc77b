"""Adding up the updates of clients, one by one in float64 in the order given, over ranks by one all-reduce.

Never by slice subtotals: the sum is bit-equal for any number of slices. A client that sends
something that is not finite, or a longer update than allowed, is left out and counted; the others' weights are
renormalised.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.round.collected import Collected, Each
from fedcohort.types import ClientUpdate, Ids, UpdateGroup, Values

CPU = torch.device("cpu")
PIECE = 131_072  # numbers of an update that are added at a time on a CPU

Reduce = Callable[[Tensor], Tensor]  # sums a tensor over ranks


@dataclass(frozen=True)
class CollectOptions:
    """What is kept of the updates.

    Attributes:
        uploads: names of the vectors that hooks send.
        averaged: those of the uploads that are weighed as updates are.
        remembers: floats of each thing that hooks keep at the client, by name; a shorter one is padded.
        reports: the columns to keep, each a function of an update.
        stacked: whether the matrix of updates is kept, too.
        moments: whether batch-norm variances are averaged by second moments.
        longest: the largest norm of an update that is let in.
        dtype: of what hooks keep, the model's: a rank that trains no client knows no other.
    """

    uploads: Sequence[str] = ()
    averaged: Collection[str] = ()
    remembers: Mapping[str, int] = field(default_factory=dict)
    reports: Mapping[str, Callable[[ClientUpdate], float]] = field(default_factory=dict)
    stacked: bool = False
    moments: bool = False
    longest: float = math.inf
    dtype: torch.dtype = torch.float32


class Collector:
    """Collects one round's updates on this rank.

    Args:
        cohort: sorted ids of all that train this round, over all ranks.
        weights: their raw weights, aligned.
        ranks: processes that share the cohort.
    """

    def __init__(
        self,
        layout: Layout,
        cohort: Ids,
        weights: Values,
        options: CollectOptions,
        ranks: int = 1,
        device: torch.device = CPU,
    ) -> None:
        def zeros(*size: int) -> Tensor:
            return torch.zeros(size, dtype=torch.float64, device=device)

        uploads, stacked, reports = options.uploads, options.stacked, options.reports
        self.cohort, self.weights, self.options, self.ranks = cohort, weights, options, ranks
        self.row = {int(client): row for row, client in enumerate(cohort)}
        self.sum = zeros(layout.n_params)
        self.totals = {name: zeros(layout.n_params) for name in uploads}
        self.buffers = zeros(layout.n_buffers)
        self.counters = torch.zeros(sum(b.size for b in layout.counters), dtype=torch.int64, device=device)
        blank = zeros if ranks > 1 else partial(torch.empty, dtype=torch.float64, device=device)
        # A client that sends nothing has no row in the end.
        self.matrix = blank(len(cohort), layout.n_params) if stacked else None
        self.piece = PIECE if device.type == "cpu" else max(1, layout.n_params)
        self.wide = torch.empty(self.piece, dtype=torch.float64, device=device)
        self.each_buffers = zeros(len(cohort), layout.n_buffers) if stacked else None
        self.each_counters = self.counters.new_zeros(len(cohort) if stacked else 0, len(self.counters))
        self.each_upload = {name: blank(len(cohort), layout.n_params) for name in uploads} if stacked else {}
        self.table = np.zeros((len(cohort), 2 + len(reports)))
        self.waiting: dict[int, float | None] = {}
        self.stored: dict[int, Mapping[str, Tensor]] = {}
        means, variances = layout.batch_norm() if options.moments else (torch.empty(0, dtype=torch.int64),) * 2
        self.means, self.variances = means.to(device), variances.to(device)

    def add(self, update: ClientUpdate) -> None:
        """Let it in, if it is sound; `training.dual` trains side by side, and such a group comes without a break."""
        row, sound = self.row[update.client], self._sound(update)
        weight = float(self.weights[row])
        if update.group is not None and self.matrix is None:
            self._add_together(update.group, update.client, weight if sound else None)
        elif sound:
            self._add(self.sum, update.delta, weight, None if self.matrix is None else self.matrix[row])
        if not sound:
            return
        self.table[row, 0], self.table[row, 1] = 1.0, update.n_used
        self.table[row, 2:] = [read(update) for read in self.options.reports.values()]
        for name, total in self.totals.items():
            own = self.each_upload[name][row] if name in self.each_upload else None
            self._add(total, update.uploads[name], weight if name in self.options.averaged else 1.0, own)
        if len(self.buffers):
            buffers = update.buffers.to(torch.float64, copy=True)  # the client may keep its own
            if self.each_buffers is not None:
                self.each_buffers[row] = buffers
            buffers[self.variances] += buffers[self.means] ** 2
            self.buffers.add_(buffers, alpha=float(update.n_used))
        if len(self.counters):
            self.counters = torch.maximum(self.counters, update.counters)
            if len(self.each_counters):
                self.each_counters[row] = update.counters
        self.stored[update.client] = update.stored

    def _add_together(self, group: UpdateGroup, client: int, weight: float | None) -> None:
        """With the last of them, all of them; those without a weight were not sound."""
        self.waiting[client] = weight
        if len(self.waiting) == len(group.norms):
            self._add(self.sum, group.total({k: w for k, w in self.waiting.items() if w is not None}), 1.0)
            self.waiting = {}

    def _add(self, total: Tensor, vector: Tensor, weight: float, row: Tensor | None = None) -> None:
        """weight x vector to the total, and the vector into its row, in pieces that a processor's cache holds."""
        for start in range(0, len(total), self.piece):
            part = vector[start : start + self.piece]
            wide = self.wide[: len(part)] if row is None else row[start : start + self.piece]
            total[start : start + self.piece].add_(wide.copy_(part), alpha=weight)

    def _sound(self, update: ClientUpdate) -> bool:
        """A norm is finite where all entries are, and don't overflow."""
        group = update.group
        norm = float(torch.linalg.vector_norm(update.delta)) if group is None else group.norms[update.client]
        beside = (*update.uploads.values(), update.buffers)
        rest = all(math.isfinite(float(torch.linalg.vector_norm(vector))) for vector in beside if len(vector))
        return math.isfinite(norm) and norm <= self.options.longest and rest

    def finish(self, reduce: Reduce, reduce_max: Reduce) -> Collected:
        """Sum over ranks; every rank gets the same result."""
        if self.waiting:
            raise ValueError(f"of a group that was trained side by side only {sorted(self.waiting)} came")
        table = reduce(torch.from_numpy(self.table)).numpy()
        here = table[:, 0] > 0
        raw = np.where(here, self.weights, 0.0)
        total = float(raw.sum())
        alive = bool(here.any()) and total > 0
        buffers = reduce(self.buffers) / max(float(table[here, 1].sum()), 1.0)
        buffers[self.variances] -= buffers[self.means] ** 2
        rows = torch.from_numpy(np.flatnonzero(here))
        return Collected(
            clients=self.cohort[here],
            dropped=self.cohort[~here],
            mean=reduce(self.sum) / total if alive else None,
            totals={name: self._total(name, reduce(vector), total) for name, vector in self.totals.items()},
            buffers=buffers if alive else None,
            counters=reduce_max(self.counters) if alive else None,
            weights=raw[here] / total if alive else np.zeros(int(here.sum())),
            updates=self._select(reduce(self.matrix), rows) if self.matrix is not None else None,
            reports={word: table[here, 2 + i].copy() for i, word in enumerate(self.options.reports)},
            stored=self._gather_stored(reduce),
            each=self._each(table[here, 1].copy(), rows, reduce, reduce_max),
        )

    def _each(self, used: Values, rows: Tensor, reduce: Reduce, reduce_max: Reduce) -> Each | None:
        if self.each_buffers is None:
            return None
        return Each(
            used,
            self._select(reduce(self.each_buffers), rows),
            self._select(reduce_max(self.each_counters), rows),
            {name: self._select(reduce(matrix), rows) for name, matrix in self.each_upload.items()},
            self.options.averaged,
            self.means,
            self.variances,
        )

    def _select(self, matrix: Tensor, rows: Tensor) -> Tensor:
        """Those rows; the matrix itself where they are all."""
        return matrix if len(rows) == len(matrix) else matrix[rows.to(matrix.device)]

    def _total(self, name: str, vector: Tensor, weights: float) -> Tensor:
        return vector / weights if name in self.options.averaged and weights > 0 else vector

    def _gather_stored(self, reduce: Reduce) -> Mapping[int, Mapping[str, Tensor]]:
        """Every rank keeps what every client remembers: next round another rank may train it.

        A client may keep less than others do: a row that begins with NaN stands for nothing kept, as in the store.
        """
        if self.ranks == 1 or not self.options.remembers:
            return self.stored
        shared = {}
        for name, size in self.options.remembers.items():
            matrix = torch.zeros((len(self.cohort), size), dtype=self.options.dtype, device=self.sum.device)
            for client, kept in self.stored.items():
                row = matrix[self.row[client]]
                if name in kept:
                    row[: len(kept[name])] = kept[name]
                else:
                    row[:1] = math.nan
            shared[name] = reduce(matrix)
        rows = {int(k): {name: matrix[i] for name, matrix in shared.items()} for k, i in self.row.items()}
        return {k: {n: row.clone() for n, row in of.items() if not row[:1].isnan().any()} for k, of in rows.items()}
