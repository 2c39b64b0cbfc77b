"""The contract of feature noise: how much each client's inputs are disturbed, and how."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64, UInt64

from fedcohort.component import Component
from fedcohort.data.ragged import Ragged
from fedcohort.data.row_hashes import row_hashes
from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import Draws, Rekeyed

Inputs = Float[np.ndarray, "samples *shape"]


class FeatureNoise(Component, Protocol):
    """How clients' inputs are disturbed, once, before anything is trained: those of their T_k and V_k alone."""

    @abstractmethod
    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw how much each client's inputs are disturbed, [n_clients], once a run; 0: not at all."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `IncompatibleConfig` where inputs of `shape` can't be disturbed so."""
        return

    @abstractmethod
    def disturb(self, x: Inputs, level: float, rng: np.random.Generator) -> Inputs:
        """Return the client's inputs as it sees them, of the same shape and type.

        Args:
            x: its inputs, [n, *shape]; they are left alone.
            level: its own of `levels`, positive.
            rng: the client's own.
        """


@dataclass(frozen=True)
class Disturbance:
    """What was done to the clients' inputs.

    Attributes:
        levels: each client's.
        before: hashes of the rows that were disturbed, as they were before (`data.row_hashes`).
    """

    levels: Float64[np.ndarray, "clients"]
    before: UInt64[np.ndarray, "rows"]


def disturb_clients(noise: FeatureNoise, parts: Sequence[tuple[np.ndarray, Ragged]], seed: int) -> Disturbance | None:
    """Disturb the clients' inputs where they stand, so that no second copy of them is held.

    What a client's inputs become is a function of the seed, the client and its inputs alone.

    Args:
        noise: the kind.
        parts: inputs [N, ...], and whose row is which: T of all clients, then V.
        seed: `data_seed`.

    Returns None where nobody's inputs are disturbed. Raises `IncompatibleConfig` where they can't be.
    """
    levels = noise.levels(Draws(seed, len(parts[0][1])))
    noisy, keyed = np.flatnonzero(levels > 0).tolist(), Rekeyed()
    if not noisy:
        return None
    first, _ = parts[0]
    if first.dtype.kind != "f":
        way_out = ": say dataset.pixels=float32 where the dataset has it" if first.dtype == np.uint8 else ""
        raise IncompatibleConfig(
            f"feature_noise disturbs real numbers, and the inputs are of type {first.dtype}{way_out}"
        )
    noise.check(first.shape[1:])
    before = []
    for k in noisy:
        rng = keyed.rekey(seed, "feature_draw", client=k)
        for x, clients in parts:
            own = slice(clients.offsets[k], clients.offsets[k + 1])
            before.append(row_hashes(x[own]))
            x[own] = noise.disturb(x[own], levels[k], rng)
    return Disturbance(levels, np.concatenate(before))
