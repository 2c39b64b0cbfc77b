"""Sparse uploads: a seed and the share rho of each tensor's numbers, at random positions that the seed selects."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.codec.base import WireCodec
from fedcohort.codec.wire import (
    Float32Vector,
    SentArrays,
    draw_seed,
    gather_sent_numbers,
    scatter_sent_numbers,
    sparse_upload_bytes,
)
from fedcohort.flat import Layout
from fedcohort.hook import Vector


@dataclass(frozen=True)
class Sparse(WireCodec):
    """A codec that sends a random part of an update D, at positions that a seed selects.

    Attributes:
        rho: share of each tensor's numbers that is sent.
        unbiased: whether the server scales the numbers by the inverse of their share.
    """

    rho: float

    unbiased: ClassVar[bool]

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "(0, 1]")

    def bytes_up(self, layout: Layout) -> int:
        """Return the bytes of an upload: 4 for each number sent, and 8 for the seed that gives their positions."""
        return sparse_upload_bytes(self.rho, layout)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> SentArrays:
        """Return the arrays to send: a seed, and the update's numbers at the positions that the seed selects."""
        return gather_sent_numbers(delta, self.rho, layout, draw_seed(rng()))

    def decode(self, sent_arrays: SentArrays, layout: Layout) -> Float32Vector:
        return scatter_sent_numbers(sent_arrays, self.rho, layout, self.unbiased)
