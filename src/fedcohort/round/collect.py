"""The weighted sum of the clients' updates: one by one in float64 on each rank, and over ranks by one all-reduce.

There are no subtotals of slices, so that the sum is bit-equal for any number of slices. A client whose vectors are not
finite, or whose update is too long, is excluded and counted; the weights of the others are normalised again.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.round.collected import Collected, PerClient
from fedcohort.types import ClientUpdate, Ids, UpdateGroup, Values

CPU = torch.device("cpu")
CHUNK = 131_072  # numbers of an update that are added at a time on a CPU, so that they stay in its cache

Reduce = Callable[[Tensor], Tensor]  # sums a tensor over ranks


@dataclass(frozen=True)
class CollectOptions:
    """The parts of updates that a collector keeps.

    Attributes:
        uploads: names of the vectors that hooks send.
        averaged: names of the uploads that are averaged with the weights of the updates; others are summed.
        remembers: number of floats of each vector that clients keep, by name; a shorter vector is padded.
        reports: functions of an update that read what the client reports, by signal.
        stacked: whether the matrix of updates is kept.
        moments: whether batch-norm variances are averaged by second moments.
        longest: largest norm of an update that is included.
        dtype: type of the vectors that clients keep, which a rank without clients cannot infer.
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
        layout: layout of the model.
        cohort: sorted ids of all clients that train in this round, over all ranks.
        weights: weights of these clients, not normalised.
        options: the parts of updates to keep.
        ranks: number of processes that share the cohort.
        device: device of the updates.
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
        # Rows of clients that send nothing are removed in `finish`, so that they need no values on a single rank.
        self.matrix = blank(len(cohort), layout.n_params) if stacked else None
        self.chunk = CHUNK if device.type == "cpu" else max(1, layout.n_params)
        self.wide = torch.empty(self.chunk, dtype=torch.float64, device=device)
        self.client_buffers = zeros(len(cohort), layout.n_buffers) if stacked else None
        self.client_counters = self.counters.new_zeros(len(cohort) if stacked else 0, len(self.counters))
        self.client_uploads = {name: blank(len(cohort), layout.n_params) for name in uploads} if stacked else {}
        self.table = np.zeros((len(cohort), 2 + len(reports)))  # whether it arrived, samples, reports
        self.group_weights: dict[int, float | None] = {}  # of an incomplete group; None for an excluded client
        self.stored: dict[int, Mapping[str, Tensor]] = {}
        means, variances = layout.batch_norm() if options.moments else (torch.empty(0, dtype=torch.int64),) * 2
        self.means, self.variances = means.to(device), variances.to(device)

    def add(self, update: ClientUpdate) -> None:
        """Add an update, unless it is excluded; the updates of a group (`types.UpdateGroup`) must be consecutive."""
        row, is_sound = self.row[update.client], self._is_sound(update)
        weight = float(self.weights[row])
        if update.group is not None and self.matrix is None:
            self._add_group(update.group, update.client, weight if is_sound else None)
        elif is_sound:
            self._add(self.sum, update.delta, weight, None if self.matrix is None else self.matrix[row])
        if not is_sound:
            return
        self.table[row, 0], self.table[row, 1] = 1.0, update.n_used
        self.table[row, 2:] = [read(update) for read in self.options.reports.values()]
        for name, total in self.totals.items():
            matrix_row = self.client_uploads[name][row] if name in self.client_uploads else None
            self._add(total, update.uploads[name], weight if name in self.options.averaged else 1.0, matrix_row)
        if len(self.buffers):
            buffers = update.buffers.to(torch.float64, copy=True)  # the update's buffers must not change
            if self.client_buffers is not None:
                self.client_buffers[row] = buffers
            buffers[self.variances] += buffers[self.means] ** 2
            self.buffers.add_(buffers, alpha=float(update.n_used))
        if len(self.counters):
            self.counters = torch.maximum(self.counters, update.counters)
            if len(self.client_counters):
                self.client_counters[row] = update.counters
        self.stored[update.client] = update.stored

    def _add_group(self, group: UpdateGroup, client: int, weight: float | None) -> None:
        """Note the weight of a client of a group, None if it is excluded; add the whole group with the last client."""
        self.group_weights[client] = weight
        if len(self.group_weights) == group.size:
            self._add(self.sum, group.total({k: w for k, w in self.group_weights.items() if w is not None}), 1.0)
            self.group_weights = {}

    def _add(self, total: Tensor, vector: Tensor, weight: float, row: Tensor | None = None) -> None:
        """Add weight * vector to `total`, and copy the vector into `row`, chunk by chunk."""
        for start in range(0, len(total), self.chunk):
            part = vector[start : start + self.chunk]
            wide = self.wide[: len(part)] if row is None else row[start : start + self.chunk]
            total[start : start + self.chunk].add_(wide.copy_(part), alpha=weight)

    def _is_sound(self, update: ClientUpdate) -> bool:
        """Return whether all vectors are finite and the update is not too long; norms show both without a mask."""
        return update.norms[0] <= self.options.longest and all(map(math.isfinite, update.norms))

    def finish(self, reduce: Reduce, reduce_max: Reduce) -> Collected:
        """Return the sums over all ranks, which are the same on every rank.

        Args:
            reduce: sums a tensor over ranks.
            reduce_max: takes the maximum of a tensor over ranks.
        """
        if self.group_weights:
            raise ValueError(f"only clients {sorted(self.group_weights)} of a group trained side by side have arrived")
        table = reduce(torch.from_numpy(self.table)).numpy()
        arrived = table[:, 0] > 0
        raw = np.where(arrived, self.weights, 0.0)
        total = float(raw.sum())
        alive = bool(arrived.any()) and total > 0
        buffers = reduce(self.buffers) / max(float(table[arrived, 1].sum()), 1.0)
        buffers[self.variances] -= buffers[self.means] ** 2
        rows = torch.from_numpy(np.flatnonzero(arrived))
        return Collected(
            clients=self.cohort[arrived],
            dropped=self.cohort[~arrived],
            mean=reduce(self.sum) / total if alive else None,
            totals={name: self._total(name, reduce(vector), total) for name, vector in self.totals.items()},
            buffers=buffers if alive else None,
            counters=reduce_max(self.counters) if alive else None,
            weights=raw[arrived] / total if alive else np.zeros(int(arrived.sum())),
            updates=self._select(reduce(self.matrix), rows) if self.matrix is not None else None,
            reports={word: table[arrived, 2 + i].copy() for i, word in enumerate(self.options.reports)},
            stored=self._gather_stored(reduce),
            per_client=self._gather_per_client(table[arrived, 1].copy(), rows, reduce, reduce_max),
        )

    def _gather_per_client(self, used: Values, rows: Tensor, reduce: Reduce, reduce_max: Reduce) -> PerClient | None:
        """Return buffers and uploads of the clients in `rows`; None if the matrix of updates is not kept."""
        if self.client_buffers is None:
            return None
        return PerClient(
            used,
            self._select(reduce(self.client_buffers), rows),
            self._select(reduce_max(self.client_counters), rows),
            {name: self._select(reduce(matrix), rows) for name, matrix in self.client_uploads.items()},
            self.options.averaged,
            self.means,
            self.variances,
        )

    def _select(self, matrix: Tensor, rows: Tensor) -> Tensor:
        """Return these rows; the matrix without a copy if they are all."""
        return matrix if len(rows) == len(matrix) else matrix[rows.to(matrix.device)]

    def _total(self, name: str, vector: Tensor, weights: float) -> Tensor:
        return vector / weights if name in self.options.averaged and weights > 0 else vector

    def _gather_stored(self, reduce: Reduce) -> Mapping[int, Mapping[str, Tensor]]:
        """Return the vectors that all clients keep, on every rank: another rank may train the client in the next round.

        A row that begins with NaN means that the client does not keep this vector, as in the store.
        """
        if self.ranks == 1 or not self.options.remembers:
            return self.stored
        shared = {}
        for name, size in self.options.remembers.items():
            matrix = torch.zeros((len(self.cohort), size), dtype=self.options.dtype, device=self.sum.device)
            for client, vectors in self.stored.items():
                row = matrix[self.row[client]]
                if name in vectors:
                    row[: len(vectors[name])] = vectors[name]
                else:
                    row[:1] = math.nan
            shared[name] = reduce(matrix)
        is_kept = {name: (~matrix[:, :1].isnan().any(1)).tolist() for name, matrix in shared.items()}
        return {
            client: {name: matrix[i].clone() for name, matrix in shared.items() if is_kept[name][i]}
            for client, i in self.row.items()
        }
