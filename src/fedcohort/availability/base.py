"""The contract of availability: which clients are ready when a round begins."""

from typing import Protocol

import numpy as np
from jaxtyping import Bool

from fedcohort.rng import Draws


class Availability(Protocol):
    """A class in which every client is ready in every round says so: `always = True`, a ClassVar or a property.

    It may have `remarks`, as selectors.
    """

    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """True for each client that can be asked in the round of `draws`."""
        ...
