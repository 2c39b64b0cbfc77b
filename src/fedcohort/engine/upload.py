"""Uploads of which some tensors are left out (`Selection.upload`): which, what they cost, and what the server has."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from fedcohort.engine.gather import Gathered
from fedcohort.flat import Block, Layout
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

Kept = Bool[np.ndarray, "tensors"]  # of the layout's parameters, in their order


def drawn(upload: Values | None, clients: Ids, layout: Layout, draws: Draws) -> list[Kept | None]:
    """What each of `clients` sends: every tensor with chance `upload` [n_clients]; None where it sends everything.

    Keyed by (seed, round, client), so that it doesn't depend on who else is selected.
    """
    if upload is None:
        return [None] * len(clients)
    found: list[Kept | None] = []
    for k in clients:
        kept = draws.generator("upload", int(k)).random(len(layout.parameters)) < upload[k]
        found.append(None if kept.all() else kept)
    return found


@dataclass(frozen=True)
class Part:
    """The layout of the tensors that are sent, one after the other, and where they lie in the whole vector."""

    layout: Layout
    positions: Int64[Tensor, "q"]


def part(layout: Layout, kept: Kept) -> Part:
    """The part of a model that is sent."""
    blocks: list[Block] = []
    offset = 0
    pieces = [torch.empty(0, dtype=torch.int64)]
    for block, stays in zip(layout.parameters, kept, strict=True):
        if stays:
            blocks.append(replace(block, offset=offset))
            offset += block.size
            pieces.append(torch.arange(block.offset, block.offset + block.size))
    return Part(Layout(tuple(blocks), layout.buffers, layout.counters), torch.cat(pieces))


def filled(gathered: Gathered, kept: Mapping[int, Kept | None], layout: Layout) -> Gathered:
    """What arrived, each tensor averaged over those who sent it; in the matrix that mean stands for what wasn't sent.

    With p_i the weights of who arrived, block by block: (sum_i p_i D_i) / (sum of p_i over those who sent it). So any
    aggregator that weighs by p_i finds the same mean, whether or not it reads the matrix. 0 where nobody sent it.
    """
    sent = [kept[int(k)] for k in gathered.clients]
    if gathered.mean is None or all(each is None for each in sent):
        return gathered
    whole = np.ones(len(layout.parameters), dtype=bool)
    table = np.stack([whole if each is None else each for each in sent])
    mean = gathered.mean.clone()
    updates = None if gathered.updates is None else gathered.updates.clone()
    for block, column in zip(layout.parameters, table.T, strict=True):
        rows = slice(block.offset, block.offset + block.size)
        share = float(gathered.weights[column].sum())
        mean[rows] = mean[rows] / share if share > 0 else 0.0
        if updates is not None:
            updates[torch.from_numpy(np.flatnonzero(~column)).to(updates.device), rows] = mean[rows]
    return replace(gathered, mean=mean, updates=updates)
