"""Random mask (Konecny et al. 2016, Sec. 2, "structured updates"): clients train the coordinates that they send alone.

    each step:  g~ = g on M, 0 elsewhere;   M: rho of each tensor's numbers, drawn by each client in each round
    client:     sends the seed of M and D on M,   server: D is 0 elsewhere, and is not scaled

Any local optimizer leaves a coordinate where it is that has had no gradient but 0; weight decay doesn't.

Departures from the paper: none. (A share that isn't a whole number is rounded, one number of a tensor at least.)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from torch import Tensor

from fedcohort import ranges
from fedcohort.codec.base import Codec
from fedcohort.codec.wire import Numbers, Wire, gather_sent, scatter, seed_of, sparse_bytes, subsets, unflatten
from fedcohort.component import UNDECAYED_CLIENT, Requirement
from fedcohort.flat import Layout
from fedcohort.hook import ClientContext, ClientHook, Correction, HookResult, Vector


@dataclass(frozen=True)
class _Masked:
    still: Bool[Tensor, "p"]

    def correct(self, g: Vector, y: Vector) -> None:
        g.masked_fill_(self.still, 0.0)  # a product would keep what is not finite

    def finish(self, y: Vector, steps: int, lr: float) -> HookResult:
        return HookResult()


@dataclass(frozen=True)
class MaskHook:
    """The client half."""

    rho: float
    downloads: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    remembers: tuple[str, ...] = ()

    def begin(
        self, w: Vector, down: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        still = np.ones(ctx.layout.n_params, dtype=np.bool_)
        for at in subsets(self.rho, ctx.layout, seed_of(ctx.rng("codec"))):
            still[at] = False
        return _Masked(unflatten(still, ctx.layout, w))


@dataclass(frozen=True)
class Mask(Codec):
    """Each client trains and sends a random part of the parameters.

    Attributes:
        rho: share of the parameters.
    """

    rho: float

    def __post_init__(self) -> None:
        ranges.number("rho", self.rho, "(0, 1]")

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return (MaskHook(self.rho),)

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({UNDECAYED_CLIENT})

    def bytes_up(self, layout: Layout) -> int:
        """4 rho d, and 8 for the seed."""
        return sparse_bytes(self.rho, layout)

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return unflatten(self.decode(self.encode(delta, layout, rng), layout), layout, delta)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Wire:
        """Return what is sent: the seed, and D on M."""
        return gather_sent(delta, self.rho, layout, seed_of(rng()))

    def decode(self, wire: Wire, layout: Layout) -> Numbers:
        return scatter(wire, self.rho, layout, unbiased=False)
