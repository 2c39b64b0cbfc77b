"""The contract of availability: which clients are ready when a round begins."""

from abc import abstractmethod
from typing import Protocol

import numpy as np
from jaxtyping import Bool

from fedcohort.part import Part
from fedcohort.rng import Draws


class Availability(Part, Protocol):
    """Who is ready.

    Attributes:
        always: whether every client is ready in every round.
    """

    @property
    def always(self) -> bool:
        return False

    @abstractmethod
    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """True for each client that can be asked in the round of `draws`."""
