"""Each client is ready with the same probability, independently of the others and of other rounds.

    ready_i = U_i < p,   U_i ~ U[0, 1) for each client and round

The U_i do not depend on p: whoever is ready at a smaller p is ready at a larger one.

Departures from the paper: none (of no paper).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.availability.base import Availability
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Bernoulli(Availability):
    """Each client is ready with the same chance.

    Attributes:
        p: the probability.
    """

    p: float

    def __post_init__(self) -> None:
        ranges.number("p", self.p, "[1e-9, 1]")

    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """True where the client is ready; a round may have nobody."""
        return draws.uniform("availability") < self.p
