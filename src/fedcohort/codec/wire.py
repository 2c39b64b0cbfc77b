"""What codecs share: float32 in the network's own order, and draws that both ends make from the same eight bytes."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from fedcohort.flat import Block, Layout
from fedcohort.hook import Vector
from fedcohort.ledger import NUMBER
from fedcohort.rng import generator

SEED = 8  # bytes of a seed
Wire = tuple[np.ndarray, ...]  # what is sent, one array after the other: their bytes are the upload
Numbers = Float32[np.ndarray, "_p"]
Flags = Bool[np.ndarray, "_p"]
Positions = Int64[np.ndarray, "_m"]


def flatten(delta: Vector, layout: Layout) -> Numbers:
    """Lay each block out in its logical order, whatever the memory layout, as float32 on the host, [P]."""
    if any(block.channels_last for block in layout.parameters):
        delta = torch.cat([block.of(delta).flatten() for block in layout.parameters])
    values: Numbers = delta.detach().to("cpu", torch.float32).numpy()
    return values


def unflatten(values: Numbers | Flags, layout: Layout, like: Tensor) -> Tensor:
    """Undo `flatten`, on the device of `like` and, for numbers, in its dtype."""
    came = torch.from_numpy(values)
    dtype = like.dtype if came.is_floating_point() else came.dtype
    if not any(block.channels_last for block in layout.parameters):
        return came.to(like.device, dtype)
    out = torch.empty(len(values), dtype=dtype)
    for block in layout.parameters:
        block.of(out).copy_(came[block.offset : block.offset + block.size].view(block.shape))
    return out.to(like.device)


def seed_of(rng: np.random.Generator) -> np.ndarray:
    """The first draw of a job's generator, as it is sent: uint64 [1]."""
    return rng.integers(2**63, size=1, dtype=np.uint64)


def shared_draws(seed: np.ndarray, block: Block) -> np.random.Generator:
    """Make the generator that client and server share for a tensor, whichever others are sent beside it."""
    return generator(int(seed[0]), f"codec {block.name}")


def count(rho: float, n: int) -> int:
    """Return how many of n numbers are sent: rho n to the nearest whole number, one at least."""
    return max(1, round(rho * n))


def subset(rho: float, n: int, rng: np.random.Generator) -> Positions:
    """Draw which `count(rho, n)` of n numbers are sent, each subset as likely as any other."""
    chosen: Positions = np.sort(rng.choice(n, count(rho, n), replace=False, shuffle=False))
    return chosen


def subsets(rho: float, layout: Layout, seed: np.ndarray) -> list[Positions]:
    """Return where the numbers that are sent stand in the flat vector, tensor by tensor."""
    return [block.offset + subset(rho, block.size, shared_draws(seed, block)) for block in layout.parameters]


def join(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Join arrays one after the other; there may be none."""
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.float32)


def sparse_bytes(rho: float, layout: Layout) -> int:
    """Return the bytes of a seed and the numbers that it says are sent."""
    return SEED + NUMBER * sum(count(rho, block.size) for block in layout.parameters)


def gather_sent(delta: Vector, rho: float, layout: Layout, seed: np.ndarray) -> Wire:
    """Return what is sent: the seed, and the numbers that it says are sent."""
    values = flatten(delta, layout)
    return seed, join([values[at] for at in subsets(rho, layout, seed)])


def scatter(wire: Wire, rho: float, layout: Layout, unbiased: bool) -> Numbers:
    """Undo `gather_sent`, with 0 where nothing was sent, [P].

    unbiased: scale each tensor by the inverse of its share.
    """
    seed, values = wire
    out = np.zeros(layout.n_params, dtype=np.float32)
    start = 0
    for block, at in zip(layout.parameters, subsets(rho, layout, seed), strict=True):
        out[at] = values[start : start + len(at)] * (block.size / len(at) if unbiased else 1.0)
        start += len(at)
    return out
