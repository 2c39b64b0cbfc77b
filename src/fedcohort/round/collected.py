"""What arrived in a round, and the same with other weights or with holes filled."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.training.upload import Kept
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class Each:
    """Buffers and vectors that each client sent with its update, in the order of `Collected.clients`.

    Attributes:
        used: samples trained on, [m].
        buffers: float64 [m, B].
        counters: int64 [m, I].
        uploads: float64 [m, P] by name.
        averaged: names of those that are weighed as updates are.
        means, variances: of batch norm, where buffers are averaged by second moments.
    """

    used: Values
    buffers: Tensor
    counters: Tensor
    uploads: Mapping[str, Tensor]
    averaged: Collection[str]
    means: Tensor
    variances: Tensor

    def mean_buffers(self, kept: Tensor) -> Tensor:
        """Average the buffers of the clients in `kept` (bool [m]), weighed by the samples that they used; [B]."""
        used, rows = torch.from_numpy(self.used).to(self.buffers)[kept], self.buffers[kept]
        rows[:, self.variances] += rows[:, self.means] ** 2
        mean: Tensor = used @ rows / used.sum()
        mean[self.variances] -= mean[self.means] ** 2
        return mean


@dataclass(frozen=True)
class Collected:
    """Everything that arrived and is finite, in the order of `clients` (sorted ids).

    Attributes:
        mean, totals, buffers, counters, updates: see `agg.base.Arrived`; None if no client arrived.
        weights: normalised.
        reports: one float64 column per word asked for.
        dropped: ids whose update was left out.
        each: kept if the matrix of updates is.
        derived: what the server worked out of the updates, by word of `signal/`.
        step_dropped: whether the server's step could not be taken, and the model stayed the same.
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
    derived: Mapping[str, Any] = field(default_factory=dict)
    step_dropped: bool = False

    @property
    def each_buffers(self) -> Tensor | None:
        """The buffers of each client that arrived, float64 [m, B]; None where only their sum is kept."""
        return None if self.each is None else self.each.buffers


def reweight(collected: Collected, weights: Float64[np.ndarray, "m"], absolute: bool = False) -> Collected:
    """Return the same arrivals under other weights (a selector's Advice), normalised unless absolute.

    It needs the matrix of updates, and raises `ValueError` without.

    A client of weight 0 counts as one that did not arrive: in the sums of uploads, in buffers and in counters.
    If all weights are 0, there is no mean.
    """
    if collected.updates is None or collected.each is None:
        raise ValueError("other weights need the matrix of updates")
    if not weights.any():
        return replace(collected, mean=None, buffers=None, counters=None, weights=np.zeros(len(weights)))
    share = weights if absolute else weights / weights.sum()
    p, each = torch.from_numpy(share).to(collected.updates), collected.each
    totals = dict(collected.totals) | {name: p @ each.uploads[name] for name in each.averaged}
    found = replace(collected, mean=p @ collected.updates, totals=totals, weights=share)
    if (weights > 0).all():
        return found
    kept = p > 0
    totals |= {name: matrix[kept].sum(0) for name, matrix in each.uploads.items() if name not in each.averaged}
    return replace(found, totals=totals, buffers=each.mean_buffers(kept), counters=each.counters[kept].amax(0))


def fill_unsent(collected: Collected, kept: Mapping[int, Kept | None], layout: Layout) -> Collected:
    """Average each tensor over those who sent it; in the matrix that mean stands for what wasn't sent.

    With p_i the weights of who arrived, block by block: (sum_i p_i D_i) / (sum of p_i over those who sent it). So any
    aggregator that weighs by p_i finds the same mean, whether or not it reads the matrix. 0 where none sent it.
    """
    parts = [kept[int(k)] for k in collected.clients]
    if collected.mean is None or all(each is None for each in parts):
        return collected
    whole = np.ones(len(layout.parameters), dtype=bool)
    table = np.stack([whole if each is None else each for each in parts])
    mean = collected.mean.clone()
    updates = None if collected.updates is None else collected.updates.clone()
    for block, column in zip(layout.parameters, table.T, strict=True):
        rows = slice(block.offset, block.offset + block.size)
        share = float(collected.weights[column].sum())
        mean[rows] = mean[rows] / share if share > 0 else 0.0
        if updates is not None:
            updates[torch.from_numpy(np.flatnonzero(~column)).to(updates.device), rows] = mean[rows]
    return replace(collected, mean=mean, updates=updates)
