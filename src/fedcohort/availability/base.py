"""The contract of availability: which clients are ready when a round begins.

A word writes one of two. `ready`, where that changes from round to round, whatever the time: no clock can say when it
will be otherwise, and a round in which nobody is ready is an empty one that takes no time. Or `schedule`, where the
virtual clock decides: a client that leaves in the middle of its work goes on when it is back, and where nobody is
ready the clock moves on to when somebody is (`round/clock.py`).
"""

from typing import Protocol

import numpy as np
from jaxtyping import Bool

from fedcohort.availability.schedule import Schedule
from fedcohort.component import Component
from fedcohort.rng import Draws


class Availability(Component, Protocol):
    """Who is ready.

    Attributes:
        always: whether every client is ready in every round.
    """

    @property
    def always(self) -> bool:
        return False

    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """True for each client that can be asked in the round of `draws`; not asked where there is a schedule."""
        return np.ones(draws.n_clients, dtype=bool)

    def schedule(self, draws: Draws) -> Schedule | None:
        """When each client is ready, None where no clock decides. draws: those made once a run."""
        return None
