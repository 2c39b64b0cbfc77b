"""Gaussian noise: attackers send random updates.

Not from a paper; a common attack in studies of robust aggregation, with other deviations in each.

    sent:  sigma * N(0, I), or with mode=add D_i + sigma * N(0, I)

sigma=null takes the root mean square of the entries of the known updates' mean (`attack/base.py`), so that the noise is
about as long as an honest step. Attackers that know no update then send the updates that they trained.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.attack.base import Colluding, UpdateStats


@dataclass(frozen=True)
class Gaussian(Colluding):
    """Gaussian noise, an attack on updates.

    Attributes:
        mode: whether noise replaces the update ("replace"), or is added to it ("add").
        sigma: standard deviation of the noise in each parameter; None for the root mean square of the mean update that
            the attackers know.
    """

    mode: str
    sigma: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("mode", self.mode, "replace", "add")
        ranges.number("sigma", self.sigma, "[0, inf)", allow_null=True)

    def send(self, update: Float[Tensor, "p"], stats: UpdateStats, rng: np.random.Generator) -> Float[Tensor, "p"]:
        sigma = self.sigma
        if sigma is None:
            if stats.mean is None:
                return update
            sigma = float(stats.mean.square().mean().sqrt())
        gaussian_noise = sigma * torch.from_numpy(rng.standard_normal(len(update))).to(update)
        return gaussian_noise + update if self.mode == "add" else gaussian_noise
