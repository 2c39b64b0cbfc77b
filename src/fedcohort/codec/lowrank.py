"""Low-rank updates: each matrix of the update is A B with a random A (Konecny et al. 2016, "structured updates").

Konecny, McMahan, Yu, Richtarik, Suresh, Bacon, "Federated Learning: Strategies for Improving Communication Efficiency",
2016, arXiv 1610.05492, Sec. 2.

    A [d1, k]:  drawn by each client in each round from a seed that is sent with B [k, d2]
    mode=train:  y = w + A B, B = 0 at first, and only B is trained
    gradient:  dL/dB = A'g with g = dL/dy, so that a step B <- B - lr A'g moves y by -lr A A'g
    mode=posthoc:  B = A+ H by least squares: A B is H projected on col(A), with k / d1 of ||H||^2 on average

H is the update, and A+ the pseudo-inverse of A. Train-time steps are those of plain training with g <- A A'g, which the
hook computes; y - w stays in col(A). Momentum, a linear map of past gradients, keeps it there. Adam, which divides each
gradient, and weight decay, which pulls on y, do not. Both modes send B = A+ H, which after mode=train is the trained B
up to rounding. Rows of H are its first dimension: outputs, as in the paper; a convolution is outputs x everything else.
Tensors with fewer than `min_size` numbers, with k >= d1, and vectors are sent unchanged.

Entries of dist=normal have variance 1 / k, so that E[A A'] = I: the mean step is that of plain training. In its k
directions a step is about d1 / k times as long, which needs a smaller learning rate. Clipping applies to A A'g.

Departures from the paper: it does not say how A is drawn. dist=uniform01 is U[0, 1), as in code that followed it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.codec import wire
from fedcohort.codec.base import WireCodec
from fedcohort.component import UNDECAYED_CLIENT, Requirement
from fedcohort.flat import Layout, TensorBlock
from fedcohort.hook import ClientContext, ClientHook, Correction, Vector
from fedcohort.ledger import BYTES_PER_NUMBER

LINEAR_OPTIMIZER_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.linear,
    "{option} trains a factor of the update by changing gradients, which works only if local steps are linear in the "
    "gradients: choose client=sgd, or codec.mode=posthoc",
)


def least_squares(A: Float[Tensor, "d1 k"], H: Float[Tensor, "d1 d2"]) -> Float[Tensor, "k d2"]:
    """Return the least-squares solution B of A B = H, for A of full column rank; not finite if H is not finite."""
    Q, R = torch.linalg.qr(A)
    return cast(Tensor, torch.linalg.solve_triangular(R, Q.t() @ H, upper=True))


def count_matrix_rows(block: TensorBlock) -> int:
    """Return the rows of the tensor at `block`, viewed as a matrix [outputs, everything else]; 1 for a vector."""
    return block.shape[0] if len(block.shape) > 1 else 1


@dataclass(frozen=True)
class _ColumnSpaceCorrection(Correction):
    """The correction that multiplies one client's gradients by A A', with each tensor's random matrix A.

    Attributes:
        blocks_and_bases: each compressed tensor with its matrix A, [rows, k].
    """

    blocks_and_bases: Sequence[tuple[TensorBlock, Tensor]]

    def correct(self, g: Vector, y: Vector) -> None:
        for block, A in self.blocks_and_bases:
            G = block.make_view(g)
            G.copy_((A @ (A.t() @ G.reshape(len(A), -1))).view(G.shape))


@dataclass(frozen=True)
class LowRankHook(ClientHook):
    """The client hook that keeps each tensor's update in the column space of its random matrix A (mode=train).

    Attributes:
        codec: the codec, which draws the matrices.
    """

    codec: "LowRank"

    def begin(
        self, w: Vector, broadcast: Mapping[str, Tensor], stored: Mapping[str, Tensor], ctx: ClientContext
    ) -> Correction:
        basis_by_block = self.codec.draw_projection_matrices(ctx.layout, wire.draw_seed(ctx.rng("codec")))
        return _ColumnSpaceCorrection([(block, A.to(w)) for block, A in basis_by_block.items()])


@dataclass(frozen=True)
class LowRank(WireCodec):
    """Low-rank updates A B with a random A, an upload codec.

    Attributes:
        k: rank of a compressed update, the number of columns of A.
        mode: "train" restricts local training to low-rank updates, "posthoc" projects the finished update.
        dist: distribution of the entries of A: "normal", or uniform in [0, 1) ("uniform01").
        min_size: smallest number of entries of a compressed tensor.
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
        return (LowRankHook(self),) if self.mode == "train" else ()

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({LINEAR_OPTIMIZER_REQUIREMENT, UNDECAYED_CLIENT} if self.mode == "train" else ())

    def bytes_up(self, layout: Layout) -> int:
        """Return the bytes of an upload: 4 per number of the factors B and of uncompressed tensors, 8 for a seed.

        Args:
            layout: names and shapes of the network's tensors.
        """
        compressed_blocks = [block for block in layout.parameters if self._is_compressed(block)]
        n_unsent_numbers = sum(
            block.size - self.k * block.size // count_matrix_rows(block) for block in compressed_blocks
        )
        return BYTES_PER_NUMBER * (layout.n_params - n_unsent_numbers) + (wire.SEED_BYTES if compressed_blocks else 0)

    def encode(self, delta: Vector, layout: Layout, rng: Callable[[], np.random.Generator]) -> wire.SentArrays:
        """Return the arrays to send: the seed of the matrices A, uint64 [1], if any; each tensor's B or its numbers.

        Args:
            delta: the update, [P].
            layout: names and shapes of the network's tensors.
            rng: function that returns the generator from which the seed is drawn.
        """
        update_numbers, seed = torch.from_numpy(wire.to_index_order(delta, layout)), wire.draw_seed(rng())
        basis_by_block, sent_arrays = self.draw_projection_matrices(layout, seed), []
        for block in layout.parameters:
            tensor_numbers = update_numbers[block.offset : block.offset + block.size]
            if block in basis_by_block:
                tensor_matrix = tensor_numbers.view(count_matrix_rows(block), -1).double()
                tensor_numbers = least_squares(basis_by_block[block], tensor_matrix).float()
            sent_arrays.append(tensor_numbers.numpy())
        return (seed, *sent_arrays) if basis_by_block else tuple(sent_arrays)

    def decode(self, sent_arrays: wire.SentArrays, layout: Layout) -> wire.Float32Vector:
        basis_by_block = self.draw_projection_matrices(layout, sent_arrays[0]) if sent_arrays else {}
        tensor_arrays = []
        for block, sent_array in zip(
            layout.parameters, sent_arrays[1:] if basis_by_block else sent_arrays, strict=True
        ):
            if block in basis_by_block:
                sent_array = (basis_by_block[block] @ torch.from_numpy(sent_array).double()).float().numpy()
            tensor_arrays.append(sent_array.ravel())
        return wire.join_arrays(tensor_arrays)

    def draw_projection_matrices(self, layout: Layout, seed: np.ndarray) -> dict[TensorBlock, Float[Tensor, "d1 k"]]:
        """Return the random matrix A of each compressed tensor, float64 [rows, k].

        Args:
            layout: names and shapes of the network's tensors.
            seed: seed that the client sends, uint64 [1].
        """
        basis_by_block = {}
        for block in (block for block in layout.parameters if self._is_compressed(block)):
            rng, basis_shape = wire.client_and_server_rng(seed, block), (count_matrix_rows(block), self.k)
            A = (
                rng.random(basis_shape)
                if self.dist == "uniform01"
                else rng.standard_normal(basis_shape) / np.sqrt(self.k)
            )
            basis_by_block[block] = torch.from_numpy(A)
        return basis_by_block

    def _is_compressed(self, block: TensorBlock) -> bool:
        return block.size >= self.min_size and self.k < count_matrix_rows(block)
