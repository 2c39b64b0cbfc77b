"""The contract of feature noise: the level of each client's noise, and the disturbed inputs."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64, UInt64

from fedcohort.component import Component
from fedcohort.data.ragged import RaggedPositions
from fedcohort.data.row_hashes import hash_rows
from fedcohort.errors import IncompatibleConfig
from fedcohort.rng import Draws, RekeyedGenerator

InputArray = Float[np.ndarray, "samples *shape"]


class FeatureNoise(Component, Protocol):
    """Feature noise: it disturbs the inputs of clients' training and validation sets once, before the training."""

    @abstractmethod
    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the level of each client's noise, [n_clients], once per run; 0 leaves a client's inputs unchanged.

        Args:
            draws: number of clients, and generators of random numbers.
        """

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `IncompatibleConfig` if this noise does not apply to inputs of `shape`."""
        return

    @abstractmethod
    def disturb(self, x: InputArray, noise_level: float, rng: np.random.Generator) -> InputArray:
        """Return the client's disturbed inputs, of the same shape and type.

        Args:
            x: inputs of the client, [n, *shape]; not changed in place.
            noise_level: positive level of the client's noise.
            rng: generator of this client.
        """


@dataclass(frozen=True)
class InputNoise:
    """The noise that was added to the clients' inputs before a run.

    Attributes:
        noise_levels: level of each client's noise, in the unit of the feature noise.
        clean_row_hashes: hashes (`data.row_hashes`) that the disturbed inputs had before the noise.
    """

    noise_levels: Float64[np.ndarray, "clients"]
    clean_row_hashes: UInt64[np.ndarray, "rows"]


def disturb_clients(
    feature_noise: FeatureNoise, inputs_and_client_rows: Sequence[tuple[np.ndarray, RaggedPositions]], seed: int
) -> InputNoise | None:
    """Disturb the clients' inputs in place, so that memory does not hold them twice.

    A client's disturbed inputs are a function of the seed, the client and its inputs.

    Args:
        feature_noise: the feature noise of the run.
        inputs_and_client_rows: inputs [N, ...] with each client's rows: the training sets, then the validation sets.
        seed: the option `data_seed`.

    Returns:
        The noise that was added; None if no client's inputs are disturbed.

    Raises:
        IncompatibleConfig: the noise does not apply to these inputs.
    """
    noise_levels = feature_noise.levels(Draws(seed, len(inputs_and_client_rows[0][1])))
    noisy_client_ids, client_generator = np.flatnonzero(noise_levels > 0).tolist(), RekeyedGenerator()
    if not noisy_client_ids:
        return None
    training_inputs, _ = inputs_and_client_rows[0]
    if training_inputs.dtype.kind != "f":
        remedy_text = "set dataset.pixels=float32 if the dataset has this option, or " * (
            training_inputs.dtype == np.uint8
        )
        raise IncompatibleConfig(
            f"feature_noise needs real numbers, but the inputs are of type {training_inputs.dtype}: {remedy_text}"
            "choose feature_noise=none"
        )
    feature_noise.check(training_inputs.shape[1:])
    clean_row_hashes = []
    for client_id in noisy_client_ids:
        rng = client_generator.rekey(seed, "feature_draw", client=client_id)
        for split_inputs, client_rows in inputs_and_client_rows:
            client_slice = slice(client_rows.offsets[client_id], client_rows.offsets[client_id + 1])
            clean_row_hashes.append(hash_rows(split_inputs[client_slice]))
            split_inputs[client_slice] = feature_noise.disturb(split_inputs[client_slice], noise_levels[client_id], rng)
    return InputNoise(noise_levels, np.concatenate(clean_row_hashes))
