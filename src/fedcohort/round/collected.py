"""The updates that arrived in a round, with functions that change their weights or fill in tensors not sent."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.training.upload import TensorMask
from fedcohort.types import Ids, Values


@dataclass(frozen=True)
class PerClient:
    """Buffers and vectors that each client sent with its update, in the order of `Collected.clients`.

    Attributes:
        used: samples that each client trained on, [m].
        buffers: buffers of each client, float64 [m, B].
        counters: integer buffers of each client, int64 [m, I].
        uploads: vectors of hooks by name, float64 [m, P].
        averaged: names of the uploads that are averaged with the weights of the updates; others are summed.
        means, variances: positions of batch-norm statistics if variances are averaged by second moments, else empty.
    """

    used: Values
    buffers: Tensor
    counters: Tensor
    uploads: Mapping[str, Tensor]
    averaged: Collection[str]
    means: Tensor
    variances: Tensor

    def mean_buffers(self, included: Tensor) -> Tensor:
        """Return the mean of the included clients' buffers, weighed by their samples, [B]; included: bool [m]."""
        used, rows = torch.from_numpy(self.used).to(self.buffers)[included], self.buffers[included]
        rows[:, self.variances] += rows[:, self.means] ** 2
        mean: Tensor = used @ rows / used.sum()
        mean[self.variances] -= mean[self.means] ** 2
        return mean


@dataclass(frozen=True)
class Collected:
    """All updates that arrived and are finite, in the order of `clients`.

    Attributes:
        clients: sorted ids.
        dropped: ids of the clients whose update was excluded.
        mean, totals, buffers, counters, updates: see `agg.base.Arrived`; None if no client arrived.
        weights: normalised weights, [m].
        reports: values that clients reported, float64 [m] by signal.
        stored: vectors that each client keeps for later rounds, by id and name.
        per_client: buffers and uploads of each client; None if the matrix of updates is not kept.
        derived: signals that the server computed from the updates, by name.
        step_dropped: whether the server's step was excluded, so that the model stayed the same.
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
    per_client: PerClient | None = None
    derived: Mapping[str, Any] = field(default_factory=dict)
    step_dropped: bool = False

    @property
    def client_buffers(self) -> Tensor | None:
        """Buffers of each client that arrived, float64 [m, B]; None if only their sum is kept."""
        return None if self.per_client is None else self.per_client.buffers


def reweight(collected: Collected, weights: Float64[np.ndarray, "m"], absolute: bool = False) -> Collected:
    """Return the same updates with other weights (a selector's Advice), normalised unless absolute.

    A client of weight 0 counts as one that did not arrive, in sums of uploads, buffers and counters. If all weights are
    0, there is no mean. Raises `ValueError` if the matrix of updates is not kept.
    """
    if collected.updates is None or collected.per_client is None:
        raise ValueError("other weights need the matrix of updates")
    if not weights.any():
        return replace(collected, mean=None, buffers=None, counters=None, weights=np.zeros(len(weights)))
    share = weights if absolute else weights / weights.sum()
    p, clients = torch.from_numpy(share).to(collected.updates), collected.per_client
    totals = dict(collected.totals) | {name: p @ clients.uploads[name] for name in clients.averaged}
    reweighted = replace(collected, mean=p @ collected.updates, totals=totals, weights=share)
    if (weights > 0).all():
        return reweighted
    used = p > 0
    totals |= {name: matrix[used].sum(0) for name, matrix in clients.uploads.items() if name not in clients.averaged}
    buffers, counters = clients.mean_buffers(used), clients.counters[used].amax(0)
    return replace(reweighted, totals=totals, buffers=buffers, counters=counters)


def fill_unsent(collected: Collected, tensor_masks: Mapping[int, TensorMask | None], layout: Layout) -> Collected:
    """Average each tensor over the clients that sent it; in the matrix the mean replaces tensors that were not sent.

    With the weights p_i of the clients, block by block: (sum_i p_i D_i) / (sum of p_i over the clients that sent it),
    or 0 if no client sent it. An aggregator that weighs by p_i then gets the same mean with or without the matrix.

    Args:
        collected: the updates.
        tensor_masks: tensors that each client sent, by id; None for all.
        layout: layout of the model.
    """
    masks = [tensor_masks[int(k)] for k in collected.clients]
    if collected.mean is None or all(mask is None for mask in masks):
        return collected
    all_tensors = np.ones(len(layout.parameters), dtype=bool)
    table = np.stack([all_tensors if mask is None else mask for mask in masks])
    mean = collected.mean.clone()
    updates = None if collected.updates is None else collected.updates.clone()
    for block, column in zip(layout.parameters, table.T, strict=True):
        rows = slice(block.offset, block.offset + block.size)
        share = float(collected.weights[column].sum())
        mean[rows] = mean[rows] / share if share > 0 else 0.0
        if updates is not None:
            updates[torch.from_numpy(np.flatnonzero(~column)).to(updates.device), rows] = mean[rows]
    return replace(collected, mean=mean, updates=updates)
