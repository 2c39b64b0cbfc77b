"""Gaussian noise in clients' inputs, with a different strength for each client (Li et al. 2022, NIID-Bench).

Li, Diao, Chen, He, "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022, arXiv 2102.02079.

    x <- x + s_k z,   z ~ N(0, I), drawn once for each sample;   s_k: see `feature_noise.levels`

s_k is in units of the network's inputs: pixels in [0, 1], or standardised features. Samples of the server and of test
sets have no noise. Disturbed inputs are not clipped to the range of the inputs.

Departures from the paper: NIID-Bench gives client k of K the variance sigma k / K. Here strengths are drawn, so that a
client's strength does not depend on its id.
"""

import numpy as np

from fedcohort.feature_noise.base import FeatureNoise, InputArray
from fedcohort.feature_noise.levels import DrawnNoiseLevels


class Gaussian(DrawnNoiseLevels, FeatureNoise):
    """Gaussian noise added to clients' inputs, a feature noise; the level is its standard deviation."""

    def disturb(self, x: InputArray, noise_level: float, rng: np.random.Generator) -> InputArray:
        """Return the inputs of a client plus normal noise, of the same shape and type.

        Args:
            x: inputs of a client, [n, ...].
            noise_level: standard deviation of the noise.
            rng: generator of this client.
        """
        noisy_inputs = rng.standard_normal(x.shape, dtype=np.float32)
        noisy_inputs *= np.float32(noise_level)
        noisy_inputs += x
        return noisy_inputs
