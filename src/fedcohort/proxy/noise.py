"""Gaussian noise with the mean and variance of each feature of the data.

    x_j ~ N(mean_j, sd_j^2), independent   for each feature (pixel) j, moments over the server's validation inputs

Moments are computed per feature, as features may have different units; a constant feature stays constant.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedcohort import ranges
from fedcohort.data.federation import Federation
from fedcohort.errors import IncompatibleConfig
from fedcohort.proxy.base import Proxy
from fedcohort.rng import new_generator


@dataclass(frozen=True)
class Noise(Proxy):
    """A proxy set of normal noise with the mean and variance of each feature of the server's validation samples.

    Attributes:
        n: number of inputs.
    """

    n: int

    def __post_init__(self) -> None:
        ranges.integer("n", self.n, "[1, inf)")

    def inputs(self, federation: Federation, seed: int) -> Tensor:
        server_inputs = federation.server_val.x
        if federation.is_symbolic:
            raise IncompatibleConfig(
                f"proxy=noise draws real numbers, but the inputs of dataset={federation.name} are sequences of tokens: "
                "choose proxy=client_heldout"
            )
        float_inputs = server_inputs.double()
        normal_draws = new_generator(seed, "proxy").standard_normal((self.n, *float_inputs.shape[1:]))
        noise_sd = float_inputs.std(0, correction=0)
        noise_inputs = float_inputs.mean(0) + noise_sd * torch.from_numpy(normal_draws).to(float_inputs)
        if not server_inputs.is_floating_point():
            noise_inputs = noise_inputs.round().clamp(0, 255)
        return noise_inputs.to(server_inputs.dtype)
