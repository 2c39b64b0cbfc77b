"""Partial uploads (`Selection.upload`): the tensors that a client sends, and their layout."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from fedcohort.codec.base import Codec
from fedcohort.flat import Layout
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


def sent_layout(layout: Layout, mask: TensorMask) -> Layout:
    """Return the layout of the tensors that a client sends, concatenated."""
    sent = [block for block, is_sent in zip(layout.parameters, mask, strict=True) if is_sent]
    offsets = itertools.accumulate((block.size for block in sent), initial=0)
    blocks = tuple(replace(block, offset=offset) for block, offset in zip(sent, offsets, strict=False))
    return Layout(blocks, layout.buffers, layout.counters)


def transmit(
    codec: Codec, layout: Layout, mask: TensorMask | None, delta: Tensor, rng: Callable[[], np.random.Generator]
) -> Tensor:
    """Return the update that the server decodes, [P]; 0 in tensors that are not sent, which no codec encodes."""
    if mask is None:
        return codec.transmit(delta, layout, rng)
    out = torch.zeros_like(delta)
    if mask.any():
        is_sent = np.repeat(mask, [block.size for block in layout.parameters])
        positions = torch.from_numpy(np.flatnonzero(is_sent)).to(delta.device)
        out[positions] = codec.transmit(delta[positions], sent_layout(layout, mask), rng)
    return out
