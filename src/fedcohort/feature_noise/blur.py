"""Gaussian blur of clients' images, with a different strength for each client.

    x <- G(s_k) * x, channel by channel;   G(s): the Gaussian kernel of standard deviation s pixels, cut off at 4 s;
    s_k: see `feature_noise.levels`

An image is mirrored beyond its edges, so that its mean brightness stays the same. Samples of the server and of test
sets are not blurred.

Departures from the paper: there is no paper; blurs are among the corruptions of Hendrycks and Dietterich (2019).
"""

import numpy as np

from fedcohort.errors import IncompatibleConfig
from fedcohort.feature_noise.base import FeatureNoise, InputArray
from fedcohort.feature_noise.levels import DrawnNoiseLevels


class Blur(DrawnNoiseLevels, FeatureNoise):
    """Gaussian blur of clients' images, a feature noise; the level is its standard deviation in pixels."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `IncompatibleConfig` if `shape`, the shape of a sample, is not [channels, height, width]."""
        if len(shape) != 3:
            raise IncompatibleConfig(
                f"feature_noise=blur needs images [channels, height, width], but inputs have the shape {list(shape)}: "
                "choose feature_noise=gaussian or feature_noise=none"
            )

    def disturb(self, x: InputArray, noise_level: float, rng: np.random.Generator) -> InputArray:
        """Return the images blurred by a Gaussian filter, of the same shape and type.

        Args:
            x: images of a client, [n, channels, height, width].
            noise_level: standard deviation of the filter, in pixels.
            rng: not used, as nothing is drawn.
        """
        from scipy.ndimage import gaussian_filter1d

        blurred_images: InputArray = gaussian_filter1d(gaussian_filter1d(x, noise_level, axis=-1), noise_level, axis=-2)
        return blurred_images
