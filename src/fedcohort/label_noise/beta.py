"""Beta-distributed label noise (FLASH, Sec. IV-A).

    rate_i ~ Beta(a, 100 - a), once per client,   E rate = a / 100

"15% label noise" is a = 15: rates of 0.15 with standard deviation sqrt(a (100 - a) / 101) / 100 = 0.036.

Departures from the paper: the paper does not say what a wrong label becomes; here one of the other classes, all
equally likely (`label_noise.base.flip`), in the training and validation samples of the client only.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Beta(LabelNoise):
    """Rates of wrong labels that are Beta-distributed over clients.

    Attributes:
        a: the mean rate in per cent.
    """

    a: float

    def __post_init__(self) -> None:
        ranges.number("a", self.a, "(0, 100)")

    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients]."""
        return draws.once().generator("label_noise").beta(self.a, 100 - self.a, draws.n_clients)
