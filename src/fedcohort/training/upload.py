"""Partial uploads (`Selection.upload`): the tensors that a client sends, and their layout."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from fedcohort.codec.base import Codec
from fedcohort.flat import Block, Layout
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

TensorMask = Bool[np.ndarray, "tensors"]  # which of the layout's parameters a client sends, in their order


def draw_tensor_masks(upload: Values | None, clients: Ids, layout: Layout, draws: Draws) -> list[TensorMask | None]:
    """Draw the tensors that each client sends: every tensor with probability `upload` [n_clients].

    The entry is None for a client that sends all tensors. A client's draw depends on the seed, the round and the
    client, but not on other clients.
    """
    if upload is None:
        return [None] * len(clients)
    masks: list[TensorMask | None] = []
    for k in clients:
        mask = draws.generator("upload", int(k)).random(len(layout.parameters)) < upload[k]
        masks.append(None if mask.all() else mask)
    return masks


@dataclass(frozen=True)
class SentPart:
    """The tensors that a client sends.

    Attributes:
        layout: layout of these tensors, concatenated.
        positions: positions of their numbers in the flat model, int64 [q].
    """

    layout: Layout
    positions: Int64[Tensor, "q"]


def sent_part(layout: Layout, mask: TensorMask) -> SentPart:
    """Return the part of a model that a client sends."""
    blocks: list[Block] = []
    offset = 0
    pieces = [torch.empty(0, dtype=torch.int64)]
    for block, is_sent in zip(layout.parameters, mask, strict=True):
        if is_sent:
            blocks.append(replace(block, offset=offset))
            offset += block.size
            pieces.append(torch.arange(block.offset, block.offset + block.size))
    return SentPart(Layout(tuple(blocks), layout.buffers, layout.counters), torch.cat(pieces))


def transmit(
    codec: Codec, layout: Layout, mask: TensorMask | None, delta: Tensor, rng: Callable[[], np.random.Generator]
) -> Tensor:
    """Return the update that the server decodes, [P]; 0 in tensors that are not sent, which no codec encodes."""
    if mask is None:
        return codec.transmit(delta, layout, rng)
    out = torch.zeros_like(delta)
    if mask.any():
        part = sent_part(layout, mask)
        positions = part.positions.to(delta.device)
        out[positions] = codec.transmit(delta[positions], part.layout, rng)
    return out
