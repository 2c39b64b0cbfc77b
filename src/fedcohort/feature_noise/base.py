"""The contract of feature noise: the level of each client's noise, and the disturbed inputs."""

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
from fedcohort.rng import Draws, RekeyedGenerator

Inputs = Float[np.ndarray, "samples *shape"]


class FeatureNoise(Component, Protocol):
    """Disturbs clients' inputs once, before the training: those of T_k and V_k, but not those of test sets."""

    @abstractmethod
    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the level of each client's noise, [n_clients], once per run; 0 for none."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `IncompatibleConfig` if this noise does not apply to inputs of `shape`."""
        return

    @abstractmethod
    def disturb(self, x: Inputs, level: float, rng: np.random.Generator) -> Inputs:
        """Return the client's disturbed inputs, of the same shape and type.

        Args:
            x: inputs of the client, [n, *shape]; not changed in place.
            level: positive level of the client's noise.
            rng: generator of this client.
        """


@dataclass(frozen=True)
class Disturbance:
    """The noise that was added to the clients' inputs before a run.

    Attributes:
        levels: level of each client's noise.
        before: hashes (`data.row_hashes`) of the disturbed rows before the noise.
    """

    levels: Float64[np.ndarray, "clients"]
    before: UInt64[np.ndarray, "rows"]


def disturb_clients(noise: FeatureNoise, parts: Sequence[tuple[np.ndarray, Ragged]], seed: int) -> Disturbance | None:
    """Disturb the clients' inputs in place, so that memory does not hold them twice.

    A client's disturbed inputs are a function of the seed, the client and its inputs.

    Args:
        noise: the kind of feature noise.
        parts: inputs [N, ...] with each client's rows: T of all clients, then V.
        seed: the option `data_seed`.

    Returns:
        Levels and hashes of the disturbed rows; None if no client's inputs are disturbed.

    Raises:
        IncompatibleConfig: the noise does not apply to these inputs.
    """
    levels = noise.levels(Draws(seed, len(parts[0][1])))
    noisy_clients, rekeyed = np.flatnonzero(levels > 0).tolist(), RekeyedGenerator()
    if not noisy_clients:
        return None
    first, _ = parts[0]
    if first.dtype.kind != "f":
        hint = "; set dataset.pixels=float32 if the dataset has this option" if first.dtype == np.uint8 else ""
        raise IncompatibleConfig(f"feature_noise needs real numbers, but the inputs are of type {first.dtype}{hint}")
    noise.check(first.shape[1:])
    before = []
    for k in noisy_clients:
        rng = rekeyed.rekey(seed, "feature_draw", client=k)
        for x, clients in parts:
            rows = slice(clients.offsets[k], clients.offsets[k + 1])
            before.append(row_hashes(x[rows]))
            x[rows] = noise.disturb(x[rows], levels[k], rng)
    return Disturbance(levels, np.concatenate(before))
