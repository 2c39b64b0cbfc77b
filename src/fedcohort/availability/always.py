"""Every client is ready in every round.

Departures from the paper: none (the assumption of FLASH, UCB-CS, FedMABA and FedDiverse).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from fedcohort.availability.base import Availability
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Always(Availability):
    """The model; it has no options."""

    always: ClassVar[bool] = True

    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """Return True for every client."""
        return np.ones(draws.n_clients, dtype=bool)
