"""Subsampling: a random part of a finished update is sent, scaled up (Konecny et al. 2016, "sketched updates").

Konecny, McMahan, Yu, Richtarik, Suresh, Bacon, "Federated Learning: Strategies for Improving Communication Efficiency",
2016, arXiv 1610.05492, Sec. 3.

    M:  the share rho of each tensor's numbers, m of n
    client:  trains as usual, then sends a seed and D on M
    server:  (n / m) D on M, 0 elsewhere, which has the mean D

Unlike codec=mask it is unbiased and does not change local training. Its variance is (1 / rho - 1) D_j^2 per coordinate.

Departures from the paper: none. (Fractional numbers are rounded, to at least one per tensor.)
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
    """The codec, with its option.

    Attributes:
        rho: share of the numbers that is sent.
    """

    rho: float

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "(0, 1]")

    def bytes_up(self, layout: Layout) -> int:
        """Return the bytes, 4 rho d, and 8 for the seed."""
        return sparse_bytes(self.rho, layout)

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return unflatten(self.decode(self.encode(delta, layout, rng), layout), layout, delta)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Wire:
        """Return the seed, and D on M."""
        return gather_sent(delta, self.rho, layout, seed_of(rng()))

    def decode(self, wire: Wire, layout: Layout) -> Numbers:
        return scatter(wire, self.rho, layout, unbiased=True)
