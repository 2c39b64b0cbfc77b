"""Images out of focus, each client's by as much as its lens: a Gaussian blur.

    x <- G(s_k) * x, channel by channel;   G(s): the Gaussian kernel of standard deviation s pixels, cut off at 4 s;
    s_k: see `feature_noise.levels`

Beyond its edges an image goes on mirrored, so that its mean brightness stays. Samples that the server or the tests hold
are as they were.

Departures from the paper: there is none; blurs are among the corruptions of Hendrycks and Dietterich (2019).
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
    """A Gaussian blur.

    Attributes:
        sigma: the largest standard deviation of a client's kernel, in pixels.
        law: of clients' standard deviations, "uniform" or "bimodal".
        share: of the clients that have any, with bimodal.
    """

    sigma: float
    law: str
    share: float

    def __post_init__(self) -> None:
        levels.check(self.sigma, self.law, self.share)

    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the standard deviation of each client's kernel, [n_clients], in pixels."""
        return levels.draw(self.sigma, self.law, self.share, draws)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `IncompatibleConfig` where inputs are no images."""
        if len(shape) != 3:
            raise IncompatibleConfig(
                f"feature_noise=blur needs images [channels, height, width], the inputs are {list(shape)}"
            )

    def disturb(self, x: Inputs, level: float, rng: np.random.Generator) -> Inputs:
        """Return the images, blurred; nothing is drawn."""
        from scipy.ndimage import gaussian_filter1d

        across: Inputs = gaussian_filter1d(gaussian_filter1d(x, level, axis=-1), level, axis=-2)
        return across
