"""The contract of availability: which clients are ready when a round begins.

A model implements one of two methods. `ready` depends on the round and not on the time: a round without a ready client
is empty and takes no time. `schedule` depends on the virtual clock: a client that leaves during its work resumes it
when it returns, and where no client is ready the clock advances until one is (`round/clock.py`).
"""

from typing import Protocol

import numpy as np
from jaxtyping import Bool

from fedcohort.availability.schedule import ReadySchedule
from fedcohort.component import Component
from fedcohort.rng import Draws


class Availability(Component, Protocol):
    """A model of which clients are ready to be selected when a round begins.

    Attributes:
        always: whether every client is ready in every round.
    """

    @property
    def always(self) -> bool:
        return False

    def ready(self, draws: Draws) -> Bool[np.ndarray, "clients"]:
        """Return whether each client is ready in a round, bool [n_clients]; unused if `schedule` returns a schedule.

        `draws` are the random numbers of the round.
        """
        return np.ones(draws.n_clients, dtype=bool)

    def schedule(self, draws: Draws) -> ReadySchedule | None:
        """Return the intervals in virtual seconds in which each client is ready; None if the clock plays no role.

        Args:
            draws: random numbers that are drawn once per run.
        """
        return None
