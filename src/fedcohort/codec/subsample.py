"""Subsampling (Konecny et al. 2016, Sec. 3, "sketched updates"): a random part of a finished update, scaled up.

    client:  trains as ever, then sends a seed and D on M,   M: rho of each tensor's numbers, m of n
    server:  (n / m) D on M, 0 elsewhere;   its mean over M is D

Unlike `mask` it is unbiased and leaves local training alone; its variance is (1 / rho - 1) D_j^2 a coordinate.

Departures from the paper: none. (A share that isn't a whole number is rounded, one number of a tensor at least.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.codec.base import Codec
from fedcohort.codec.wire import Numbers, Wire, gather_sent, scatter, seed_of, sparse_bytes, unflatten
from fedcohort.flat import Layout
from fedcohort.hook import Vector


@dataclass(frozen=True)
class Subsample(Codec):
    """Each client sends a random part of its finished update.

    Attributes:
        rho: share of the numbers that is sent.
    """

    rho: float

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "(0, 1]")

    def bytes_up(self, layout: Layout) -> int:
        """4 rho d, and 8 for the seed."""
        return sparse_bytes(self.rho, layout)

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return unflatten(self.decode(self.encode(delta, layout, rng), layout), layout, delta)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Wire:
        """Return what is sent: the seed, and D on M."""
        return gather_sent(delta, self.rho, layout, seed_of(rng()))

    def decode(self, wire: Wire, layout: Layout) -> Numbers:
        return scatter(wire, self.rho, layout, unbiased=True)
