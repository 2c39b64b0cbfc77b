"""Gaussian blur of clients' images, with a different strength for each client.

    x <- G(s_k) * x, channel by channel;   G(s): the Gaussian kernel of standard deviation s pixels, cut off at 4 s;
    s_k: see `feature_noise.levels`

An image is mirrored beyond its edges, so that its mean brightness stays the same. Samples of the server and of test
sets are not blurred.

Departures from the paper: there is no paper; blurs are among the corruptions of Hendrycks and Dietterich (2019).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.errors import IncompatibleConfig
from fedcohort.feature_noise import levels
from fedcohort.feature_noise.base import FeatureNoise, Inputs
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Blur(FeatureNoise):
    """Gaussian blur of clients' images, a feature noise.

    Attributes:
        sigma: largest standard deviation of a client's kernel, in pixels.
        law: distribution of the standard deviations over clients, "uniform" or "bimodal".
        share: fraction of the clients with blurred images under law=bimodal.
    """

    sigma: float
    law: str
    share: float

    def __post_init__(self) -> None:
        levels.check_level_options(self.sigma, self.law, self.share)

    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the standard deviation of each client's kernel, [n_clients], in pixels."""
        return levels.draw_levels(self.sigma, self.law, self.share, draws)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `IncompatibleConfig` if inputs are not images."""
        if len(shape) != 3:
            raise IncompatibleConfig(
                f"feature_noise=blur needs images [channels, height, width], but inputs have the shape {list(shape)}"
            )

    def disturb(self, x: Inputs, level: float, rng: np.random.Generator) -> Inputs:
        """Return the blurred images; `rng` is not used."""
        from scipy.ndimage import gaussian_filter1d

        blurred: Inputs = gaussian_filter1d(gaussian_filter1d(x, level, axis=-1), level, axis=-2)
        return blurred
