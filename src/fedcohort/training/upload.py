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


def draw_tensor_masks(send_probs: Values | None, clients: Ids, layout: Layout, draws: Draws) -> list[TensorMask | None]:
    """Draw which tensors each client sends: for each client a mask, bool [tensors], or None if it sends all.

    A client's draw depends on the seed, the round and the client, but not on other clients.

    Args:
        send_probs: probability with which each client sends a tensor, [n_clients]; None if all send everything.
        clients: ids of the clients.
        layout: layout of the model's tensors.
        draws: random numbers of the round.
    """
    if send_probs is None:
        return [None] * len(clients)
    tensor_masks: list[TensorMask | None] = []
    for client in clients:
        tensor_mask = draws.generator("upload", int(client)).random(len(layout.parameters)) < send_probs[client]
        tensor_masks.append(None if tensor_mask.all() else tensor_mask)
    return tensor_masks


def make_sent_layout(layout: Layout, tensor_mask: TensorMask) -> Layout:
    """Return the layout of the tensors that a client sends, concatenated.

    Args:
        layout: layout of all tensors.
        tensor_mask: which of the tensors are sent.
    """
    sent_tensor_blocks = list(itertools.compress(layout.parameters, tensor_mask))
    sent_offsets = itertools.accumulate((b.size for b in sent_tensor_blocks), initial=0)
    blocks_in_upload = tuple(replace(b, offset=n) for b, n in zip(sent_tensor_blocks, sent_offsets, strict=False))
    return Layout(blocks_in_upload, layout.buffers, layout.counters)


def encode_and_decode_update(
    codec: Codec, layout: Layout, tensor_mask: TensorMask | None, delta: Tensor, rng: Callable[[], np.random.Generator]
) -> Tensor:
    """Return the update that the server decodes, [P]; 0 in tensors that are not sent, which no codec encodes.

    Args:
        codec: the compression of updates.
        layout: layout of the model's tensors.
        tensor_mask: which of the tensors are sent; None for all.
        delta: the client's update, [P].
        rng: function that returns the codec's random generator.
    """
    if tensor_mask is None:
        return codec.transmit(delta, layout, rng)
    decoded_update = torch.zeros_like(delta)
    if tensor_mask.any():
        is_parameter_sent = layout.repeat_for_parameters(torch.from_numpy(tensor_mask).to(delta.device))
        sent_layout = make_sent_layout(layout, tensor_mask)
        decoded_update[is_parameter_sent] = codec.transmit(delta[is_parameter_sent], sent_layout, rng)
    return decoded_update
