"""Gaussian noise in clients' inputs, of a strength of each client's own (Li et al. 2022, NIID-Bench).

    x <- x + s_k z,   z ~ N(0, I), drawn once for each sample;   s_k: see `feature_noise.levels`

s_k is in the units of the inputs as the network sees them: of pixels in [0, 1], or of standardised features. Samples
that the server or the tests hold are as they were, and nothing is cut off at the ends of the inputs' range.

Departures from the paper: NIID-Bench gives client k of K the variance sigma k / K, in the order of the clients; here
strengths are drawn, so that a client's number says nothing.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.feature_noise import levels
from fedcohort.feature_noise.base import FeatureNoise, Inputs
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Gaussian(FeatureNoise):
    """Noise that is added to inputs.

    Attributes:
        sigma: the largest standard deviation of a client's noise, in units of the inputs.
        law: of clients' standard deviations, "uniform" or "bimodal".
        share: of the clients that have any, with bimodal.
    """

    sigma: float
    law: str
    share: float

    def __post_init__(self) -> None:
        levels.check(self.sigma, self.law, self.share)

    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the standard deviation of each client's noise, [n_clients]."""
        return levels.draw(self.sigma, self.law, self.share, draws)

    def disturb(self, x: Inputs, level: float, rng: np.random.Generator) -> Inputs:
        """Return the inputs with noise."""
        noise = rng.standard_normal(x.shape, dtype=np.float32)
        noise *= np.float32(level)
        noise += x
        return noise
