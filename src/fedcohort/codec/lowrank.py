"""Low-rank updates (Konecny et al. 2016, Sec. 2, "structured updates"): a matrix of the update is H = A B.

A [d1, k] is drawn afresh by each client in each round from a seed that is sent with B [k, d2]; the server makes H.

train     y = w + A B with B = 0 at first, and B alone is trained. dL/dB = A'g, where g = dL/dy, so that a step of
          SGD, B <- B - lr A'g, moves y by -lr A A'g: it is the step of plain training with g <- A A'g, and momentum
          (a fixed linear map of the gradients so far) carries A through in the same way. The hook makes that change
          of g; y - w stays in col(A). Adam divides gradient by gradient, weight decay pulls on y: both leave it.
posthoc   B = A+ H, least squares: A B is H projected on col(A), which shrinks ||H||^2 to k / d1 of it on average

Both send B = A+ H: after train-time training that is the B trained, to rounding. Rows of H are its first dimension
(outputs, as in the paper; a convolution is outputs x everything else). Tensors with fewer than `min_size` numbers,
those with k >= d1, and vectors are sent as they are.

`normal` entries have variance 1 / k, E[A A'] = I: the mean step is that of plain training, but in its k directions a
step is about d1 / k times as long, which a learning rate has to leave room for. Clipping is of A A'g.

Departures from the paper: it says that A is random, not how. `uniform01` is U[0, 1), as code that followed it has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.codec.base import Codec
from fedcohort.codec.wire import SEED, Numbers, Wire, flatten, join, seed_of, shared_draws, unflatten
from fedcohort.component import UNDECAYED_CLIENT, Requirement
from fedcohort.flat import Block, Layout
from fedcohort.hook import ClientContext, ClientHook, Correction, HookResult, Vector
from fedcohort.ledger import NUMBER

LINEAR_CLIENT = Requirement(
    lambda run: run.parts.client.linear,
    "{option} trains a factor of the update by changing gradients, which only holds where steps are linear in them: "
    "choose client=sgd, or codec.mode=posthoc",
)


def least_squares(A: Float[Tensor, "d1 k"], H: Float[Tensor, "d1 d2"]) -> Float[Tensor, "k d2"]:
    """B = A+ H for an A of full column rank; not finite where H isn't."""
    Q, R = torch.linalg.qr(A)
    B: Tensor = torch.linalg.solve_triangular(R, Q.t() @ H, upper=True)
    return B


def rows(block: Block) -> int:
    """d1."""
    return block.shape[0] if len(block.shape) > 1 else 1


class _Confined:
    """Keeps one client's local training within col(A).

    Attributes:
        bases: A of each block that is compressed.
    """

    def __init__(self, bases: Sequence[tuple[Block, Tensor]]) -> None:
        self.bases = bases

    def correct(self, g: Vector, y: Vector) -> None:
        for block, A in self.bases:
            G = block.of(g)
            G.copy_((A @ (A.t() @ G.reshape(len(A), -1))).view(G.shape))

    def finish(self, y: Vector, steps: int, lr: float) -> HookResult:
        return HookResult()


@dataclass(frozen=True)
class Subspace:
    """The client half."""

    codec: "LowRank"
    downloads: tuple[str, ...] = ()
    uploads: tuple[str, ...] = ()
    remembers: tuple[str, ...] = ()

    def begin(
        self, w: Vector, down: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        bases = self.codec.bases(ctx.layout, seed_of(ctx.rng("codec")))
        return _Confined([(block, A.to(w)) for block, A in bases.items()])


@dataclass(frozen=True)
class LowRank(Codec):
    """The codec, with its options.

    Attributes:
        k: rank.
        mode: "train" or "posthoc".
        dist: of A, "normal" or "uniform01".
        min_size: numbers worth compressing.
    """

    k: int
    mode: str
    dist: str
    min_size: int

    def __post_init__(self) -> None:
        ranges.integer("k", self.k, "[1, inf)")
        ranges.choice("mode", self.mode, "train", "posthoc")
        ranges.choice("dist", self.dist, "normal", "uniform01")
        ranges.integer("min_size", self.min_size, "[1, inf)")

    @property
    def hooks(self) -> tuple[ClientHook, ...]:
        return (Subspace(self),) if self.mode == "train" else ()

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({LINEAR_CLIENT, UNDECAYED_CLIENT} if self.mode == "train" else ())

    def bytes_up(self, layout: Layout) -> int:
        """4 k d2 of each tensor that is compressed and 8 for their seed; 4 a number of the others."""
        small = {block: self.k * block.size // rows(block) for block in layout.parameters if self._compresses(block)}
        numbers = sum(small.get(block, block.size) for block in layout.parameters)
        return NUMBER * numbers + (SEED if small else 0)

    def transmit(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Vector:
        return unflatten(self.decode(self.encode(delta, layout, rng), layout), layout, delta)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> Wire:
        """The seed where there is anything to draw, then each tensor, or its B."""
        values, seed = torch.from_numpy(flatten(delta, layout)), seed_of(rng())
        bases, parts = self.bases(layout, seed), []
        for block in layout.parameters:
            part = values[block.offset : block.offset + block.size]
            if block in bases:
                part = least_squares(bases[block], part.view(rows(block), -1).double()).float()
            parts.append(part.numpy())
        return (seed, *parts) if bases else tuple(parts)

    def decode(self, wire: Wire, layout: Layout) -> Numbers:
        any_compressed = any(self._compresses(block) for block in layout.parameters)
        bases = self.bases(layout, wire[0]) if any_compressed else {}
        parts = []
        for block, part in zip(layout.parameters, wire[1:] if any_compressed else wire, strict=True):
            if block in bases:
                part = (bases[block] @ torch.from_numpy(part).double()).float().numpy()
            parts.append(part.ravel())
        return join(parts)

    def bases(self, layout: Layout, seed: np.ndarray) -> dict[Block, Float[Tensor, "d1 k"]]:
        """A of each tensor that is compressed, float64."""
        return {
            block: self._draw(shared_draws(seed, block), rows(block))
            for block in layout.parameters
            if self._compresses(block)
        }

    def _draw(self, rng: np.random.Generator, d1: int) -> Float[Tensor, "d1 k"]:
        if self.dist == "uniform01":
            return torch.from_numpy(rng.random((d1, self.k)))
        return torch.from_numpy(rng.standard_normal((d1, self.k)) / np.sqrt(self.k))

    def _compresses(self, block: Block) -> bool:
        return block.size >= self.min_size and self.k < rows(block)
