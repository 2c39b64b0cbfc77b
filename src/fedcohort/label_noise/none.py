"""No label noise: every label is correct.

    rate_i = 0

Departures from the paper: none.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws


@dataclass(frozen=True)
class NoNoise(LabelNoise):
    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Return the rate 0 of wrong labels for every client, [n_clients]; `draws` has their number."""
        return np.zeros(draws.n_clients)
