"""Uploads of which some tensors are left out (`Selection.upload`): which, and the layout of the rest."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from fedcohort.flat import Block, Layout
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

Kept = Bool[np.ndarray, "tensors"]  # of the layout's parameters, in their order


def draw_kept(upload: Values | None, clients: Ids, layout: Layout, draws: Draws) -> list[Kept | None]:
    """Draw what each of `clients` sends: every tensor with chance `upload` [n_clients].

    None stands for a client that sends everything.

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
class SentPart:
    """The layout of the tensors that are sent, one after the other, and where they lie in the whole vector."""

    layout: Layout
    positions: Int64[Tensor, "q"]


def part(layout: Layout, kept: Kept) -> SentPart:
    """Return the part of a model that is sent."""
    blocks: list[Block] = []
    offset = 0
    pieces = [torch.empty(0, dtype=torch.int64)]
    for block, stays in zip(layout.parameters, kept, strict=True):
        if stays:
            blocks.append(replace(block, offset=offset))
            offset += block.size
            pieces.append(torch.arange(block.offset, block.offset + block.size))
    return SentPart(Layout(tuple(blocks), layout.buffers, layout.counters), torch.cat(pieces))
