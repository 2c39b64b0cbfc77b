"""Parts that codecs share: float32 in the network's order, and random numbers that client and server both derive."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from fedcohort.flat import Layout, TensorBlock
from fedcohort.hook import Vector
from fedcohort.rng import new_generator

SEED_BYTES = 8  # bytes of a seed
SentArrays = tuple[np.ndarray, ...]  # the arrays that are sent: their bytes are the upload
Float32Vector = Float32[np.ndarray, "_p"]
BoolVector = Bool[np.ndarray, "_p"]
SentPositions = Int64[np.ndarray, "_m"]


def to_index_order(delta: Vector, layout: Layout) -> Float32Vector:
    """Return an update with the numbers of each tensor in the order of its indices, float32 on the CPU, [P].

    Args:
        delta: the update, [P], with tensors in memory order, such as channels last.
        layout: names and shapes of the network's tensors.
    """
    if any(block.channels_last for block in layout.parameters):
        delta = torch.cat([block.make_view(delta).flatten() for block in layout.parameters])
    return np.asarray(delta.detach().to("cpu", torch.float32).numpy())


def to_memory_order(values_in_index_order: Float32Vector | BoolVector, layout: Layout, target_tensor: Tensor) -> Tensor:
    """Return numbers with each tensor in the memory order of the parameters, [P].

    Args:
        values_in_index_order: numbers with each tensor in its logical order.
        layout: shapes and memory order of the tensors.
        target_tensor: tensor with the device of the result, and with its dtype unless the numbers are booleans.
    """
    flat_tensor = torch.from_numpy(values_in_index_order)
    result_dtype = target_tensor.dtype if flat_tensor.is_floating_point() else flat_tensor.dtype
    if not any(block.channels_last for block in layout.parameters):
        return flat_tensor.to(target_tensor.device, result_dtype)
    tensor_in_memory_order = torch.empty(len(values_in_index_order), dtype=result_dtype)
    for block in layout.parameters:
        block_values = flat_tensor[block.offset : block.offset + block.size]
        block.make_view(tensor_in_memory_order).copy_(block_values.view(block.shape))
    return tensor_in_memory_order.to(target_tensor.device)


def draw_seed(rng: np.random.Generator) -> np.ndarray:
    """Draw from the generator `rng` the seed that a client sends with its update, uint64 [1]."""
    return rng.integers(2**63, size=1, dtype=np.uint64)


def client_and_server_rng(seed: np.ndarray, block: TensorBlock) -> np.random.Generator:
    """Return the generator that client and server share for the tensor at `block`.

    Args:
        seed: seed that the client sends, uint64 [1].
        block: position of the tensor; its name makes the generators of tensors independent.
    """
    return new_generator(int(seed[0]), f"codec {block.name}")


def count_sent_numbers(rho: float, n_numbers: int) -> int:
    """Return how many of a tensor's `n_numbers` numbers are sent: the share `rho`, rounded, at least one."""
    return max(1, round(rho * n_numbers))


def draw_tensor_positions(rho: float, n_numbers: int, rng: np.random.Generator) -> SentPositions:
    """Draw the sorted positions of the numbers of a tensor that are sent.

    Args:
        rho: share of the numbers that is sent.
        n_numbers: size of the tensor.
        rng: generator that draws the positions.
    """
    return np.sort(rng.choice(n_numbers, count_sent_numbers(rho, n_numbers), replace=False, shuffle=False))


def draw_sent_positions(rho: float, layout: Layout, seed: np.ndarray) -> list[SentPositions]:
    """Return the positions of the sent numbers in the flat update, sorted, one array for each tensor.

    Args:
        rho: share of each tensor's numbers that is sent.
        layout: names and shapes of the network's tensors.
        seed: seed that the client sends, uint64 [1].
    """
    return [b.offset + draw_tensor_positions(rho, b.size, client_and_server_rng(seed, b)) for b in layout.parameters]


def join_arrays(arrays_to_join: Sequence[np.ndarray]) -> np.ndarray:
    """Return `arrays_to_join` joined one after the other; an empty float32 array if there are none."""
    return np.concatenate(arrays_to_join) if arrays_to_join else np.empty(0, dtype=np.float32)
