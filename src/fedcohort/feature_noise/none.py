"""No feature noise: no client's inputs are disturbed.

    level_k = 0

Departures from the paper: none.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.feature_noise.base import FeatureNoise, InputArray
from fedcohort.rng import Draws


@dataclass(frozen=True)
class NoFeatureNoise(FeatureNoise):
    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Return the level 0 of feature noise for every client, [n_clients]; nothing is taken from `draws`."""
        return np.zeros(draws.n_clients)

    def disturb(self, x: InputArray, noise_level: float, rng: np.random.Generator) -> InputArray:
        """Return the inputs `x` of a client unchanged; the other arguments have no effect."""
        return x
