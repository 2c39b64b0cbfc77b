"""Parts that codecs share: float32 in the network's order, and random numbers that client and server both derive."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from fedcohort.flat import Block, Layout
from fedcohort.hook import Vector
from fedcohort.ledger import NUMBER
from fedcohort.rng import new_generator

SEED = 8  # bytes of a seed
Wire = tuple[np.ndarray, ...]  # the arrays that are sent: their bytes are the upload
Numbers = Float32[np.ndarray, "_p"]
Flags = Bool[np.ndarray, "_p"]
Positions = Int64[np.ndarray, "_m"]


def flatten(delta: Vector, layout: Layout) -> Numbers:
    """Return each tensor in its logical order, whatever the memory layout, as float32 on the host, [P]."""
    if any(block.channels_last for block in layout.parameters):
        delta = torch.cat([block.of(delta).flatten() for block in layout.parameters])
    values: Numbers = delta.detach().to("cpu", torch.float32).numpy()
    return values


def unflatten(values: Numbers | Flags, layout: Layout, like: Tensor) -> Tensor:
    """Return numbers in logical order in the memory order of the parameters, [P], on the device of `like`."""
    tensor = torch.from_numpy(values)
    dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
    if not any(block.channels_last for block in layout.parameters):
        return tensor.to(like.device, dtype)
    out = torch.empty(len(values), dtype=dtype)
    for block in layout.parameters:
        block.of(out).copy_(tensor[block.offset : block.offset + block.size].view(block.shape))
    return out.to(like.device)


def draw_seed(rng: np.random.Generator) -> np.ndarray:
    """Return the first draw of a job's generator, which is sent as seed: uint64 [1]."""
    return rng.integers(2**63, size=1, dtype=np.uint64)


def shared_generator(seed: np.ndarray, block: Block) -> np.random.Generator:
    """Return the generator that client and server share for a tensor; it does not depend on the other tensors."""
    return new_generator(int(seed[0]), f"codec {block.name}")


def count_sent(rho: float, n: int) -> int:
    """Return how many of n numbers are sent: rho n to the nearest integer, at least one."""
    return max(1, round(rho * n))


def draw_sent_mask(rho: float, n: int, rng: np.random.Generator) -> Positions:
    """Draw which of n numbers are sent, `count_sent(rho, n)` of them; return their sorted positions."""
    chosen: Positions = np.sort(rng.choice(n, count_sent(rho, n), replace=False, shuffle=False))
    return chosen


def draw_sent_positions(rho: float, layout: Layout, seed: np.ndarray) -> list[Positions]:
    """Return the positions of the sent numbers in the flat vector, tensor by tensor."""
    return [
        block.offset + draw_sent_mask(rho, block.size, shared_generator(seed, block)) for block in layout.parameters
    ]


def join_arrays(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the arrays joined one after the other; an empty float32 array if there are none."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)


def sparse_bytes(rho: float, layout: Layout) -> int:
    """Return the bytes of an upload with the share rho of each tensor's numbers, and a seed for their positions."""
    return SEED + NUMBER * sum(count_sent(rho, block.size) for block in layout.parameters)


def gather_sent(delta: Vector, rho: float, layout: Layout, seed: np.ndarray) -> Wire:
    """Return the arrays to send: the seed, and the update's numbers at the positions that the seed selects."""
    values = flatten(delta, layout)
    return seed, join_arrays([values[positions] for positions in draw_sent_positions(rho, layout, seed)])


def scatter_sent(wire: Wire, rho: float, layout: Layout, unbiased: bool) -> Numbers:
    """Return the inverse of `gather_sent`, with 0 if nothing was sent, [P].

    Args:
        wire: seed and numbers.
        rho: share of the numbers.
        layout: shapes of the network's tensors.
        unbiased: whether each tensor is scaled by the inverse of its share.
    """
    seed, values = wire
    out = np.zeros(layout.n_params, dtype=np.float32)
    start = 0
    for block, positions in zip(layout.parameters, draw_sent_positions(rho, layout, seed), strict=True):
        out[positions] = values[start : start + len(positions)] * (block.size / len(positions) if unbiased else 1.0)
        start += len(positions)
    return out
