"""Beta-distributed label noise (FLASH, Sec. IV-A).

Chang et al., "FLASH: Federated Learning Across Simultaneous Heterogeneities", arXiv 2402.08769.

    rate_i ~ Beta(a c / 100, (100 - a) c / 100), once per client,   E rate = a / 100,   c: the concentration

FLASH has c = 100; "15% label noise" is a = 15. The standard deviation of rates is sqrt(a (100 - a) / (c + 1)) / 100:

    a = 15:   0.036 at c = 100,   0.108 at c = 10,   0.206 at c = 2

At c = 100 nine in ten clients have between 10 and 21 % of wrong labels, so that a selector can gain little. At c = 2
three in ten clients have less than 1 % of wrong labels, and one in eleven has more than half.

Departures from the paper: the paper does not state what a wrong label becomes. Here it is uniform over the other
classes (`LabelNoise.flip`), and only the clients' training and validation samples have noise.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Beta(LabelNoise):
    """A label noise whose rates are drawn from a Beta distribution, one rate for each client.

    Attributes:
        a: mean rate in per cent.
        concentration: sum of the distribution's two parameters; clients differ less with a larger value.
    """

    a: float
    concentration: float

    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    def __post_init__(self) -> None:
        ranges.number("a", self.a, "(0, 100)")
        ranges.number("concentration", self.concentration, "[1e-100, inf)")

    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients], from `draws`, the run's random numbers."""
        rng, concentration_factor = draws.draws_of_run().generator("label_noise"), self.concentration / 100
        return rng.beta(self.a * concentration_factor, (100 - self.a) * concentration_factor, draws.n_clients)
