"""Gaussian noise that looks like data in nothing but its first two moments.

    x_j ~ N(mean_j, sd_j^2), independent   for each feature (pixel) j, moments over the server's validation inputs

Feature by feature, not over all of them: features may be of different units, and one that never varies stays as it is.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.proxy.base import Proxy
from fedcohort.rng import generator


@dataclass(frozen=True)
class Noise(Proxy):
    """The proxy, with its option.

    Attributes:
        n: how many inputs are drawn.
    """

    n: int

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)")

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        like = federation.server_val.x
        pixels = like.double()
        z = torch.from_numpy(generator(seed, "proxy").standard_normal((self.n, *pixels.shape[1:]))).to(pixels)
        drawn = pixels.mean(0) + pixels.std(0, correction=0) * z
        return drawn.to(like.dtype) if like.is_floating_point() else drawn.round().clamp(0, 255).to(like.dtype)
