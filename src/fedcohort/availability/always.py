"""Every client is ready in every round.

Departures from the paper: none (what FLASH, UCB-CS, FedMABA and FedDiverse assume).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from fedcohort.rng import Draws


@dataclass(frozen=True)
class Always:
    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """All True."""
        return np.ones(draws.n_clients, dtype=bool)
