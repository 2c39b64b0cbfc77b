"""Each client is ready with the same probability, independently of other clients and rounds.

    ready_i:  U_i < p, U_i ~ U[0, 1) for each client and round

The U_i do not depend on p: a client that is ready at a smaller p is ready at a larger one.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.availability.base import Availability
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Bernoulli(Availability):
    """An availability model in which each client is ready with the same probability, independently in each round.

    Attributes:
        p: probability that a client is ready, in [1e-9, 1].
    """

    p: float

    def __post_init__(self) -> None:
        ranges.number("p", self.p, "[1e-9, 1]")

    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """Return whether each client is ready in the round of `draws`, bool [n_clients]; possibly none is."""
        return draws.uniform("availability") < self.p
