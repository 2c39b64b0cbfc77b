"""Helpers for tests of codecs: layouts, keyed generators, and a device whose upload time follows from its bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from fedcohort.device.base import Device, Timing, Workload
from fedcohort.flat import Layout, TensorBlock
from fedcohort.hook import ClientContext, Correction
from fedcohort.rng import Draws, new_generator
from fedcohort.types import Ids

BYTES_PER_S = 1000.0


def make_layout(*shapes: tuple[int, ...], channels_last: bool = False) -> Layout:
    blocks: list[TensorBlock] = []
    for i, shape in enumerate(shapes):
        offset = sum(block.size for block in blocks)
        blocks.append(TensorBlock(f"t{i}", shape, offset, channels_last and len(shape) == 4))
    return Layout(tuple(blocks), (), ())


def make_generator_factory(client: int = 0, round: int = 0) -> Callable[[], np.random.Generator]:
    """Return the factory of the generator that the engine passes to `transmit`."""
    return partial(new_generator, 0, "codec", round, client)


def make_client_context(layout: Layout, client: int = 0) -> ClientContext:
    """Return the context that the engine passes to a client's hook."""
    return ClientContext(0, client, layout, lambda purpose: new_generator(0, purpose, 0, client))


def begin_round(codec: Any, w: torch.Tensor, layout: Layout, client: int = 0) -> Correction:
    (hook,) = codec.hooks
    correction: Correction = hook.begin(w, {}, {}, make_client_context(layout, client))
    return correction


def draw_normal(n: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


@dataclass(frozen=True)
class Uplink(Device):
    """Device whose only phase is the upload, at `BYTES_PER_S`."""

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        zeros = np.zeros(len(clients))
        return Timing(zeros, zeros, zeros, work.bytes_up / BYTES_PER_S)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        return self.expect(clients, work, draws)
