"""Gaussian noise in clients' inputs, with a different strength for each client (Li et al. 2022, NIID-Bench).

Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022, arXiv 2102.02079.

    x <- x + s_k z,   z ~ N(0, I), drawn once for each sample;   s_k: see `feature_noise.levels`

s_k is in units of the network's inputs: pixels in [0, 1], or standardised features. Samples of the server and of test
sets have no noise. Disturbed inputs are not clipped to the range of the inputs.

Departures from the paper: NIID-Bench gives client k of K the variance sigma k / K. Here strengths are drawn, so that a
client's strength does not depend on its id.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.feature_noise import levels
from fedcohort.feature_noise.base import FeatureNoise, Inputs
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Gaussian(FeatureNoise):
    """Gaussian noise added to clients' inputs, a feature noise.

    Attributes:
        sigma: largest standard deviation of a client's noise, in units of the inputs.
        law: distribution of the standard deviations over clients, "uniform" or "bimodal".
        share: fraction of the clients with noise under law=bimodal.
    """

    sigma: float
    law: str
    share: float

    def __post_init__(self) -> None:
        levels.check_level_options(self.sigma, self.law, self.share)

    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the standard deviation of each client's noise, [n_clients]."""
        return levels.draw_levels(self.sigma, self.law, self.share, draws)

    def disturb(self, x: Inputs, level: float, rng: np.random.Generator) -> Inputs:
        """Return the client's inputs plus normal noise of standard deviation `level`."""
        noise = rng.standard_normal(x.shape, dtype=np.float32)
        noise *= np.float32(level)
        noise += x
        return noise
