"""What the server hears of the clients: what they measured, as they tell it under the run's attack."""

from collections.abc import Callable

import numpy as np

from fedcohort.attack.base import Answers, Attack
from fedcohort.rng import generator
from fedcohort.types import ClientUpdate, Ids


class ClientClaims:
    """What clients claim of themselves under the run's attack.

    Attributes:
        liars: which clients lie, bool [n_clients].
    """

    def __init__(self, attack: Attack, seed: int, n_clients: int) -> None:
        self.attack = attack
        self.liars = np.zeros(n_clients, dtype=bool)
        self.liars[attack.liars(n_clients, generator(seed, "attack"))] = True

    def hear(self, signal: str, clients: Ids, values: Answers) -> Answers:
        """Return what `clients` say of `signal`, [len(clients), ...]; a row of numbers is lied about as a whole."""
        lying = self.liars[clients]
        if not lying.any():
            return values
        out = values.copy()
        out[lying] = self.attack.claim(signal, values[lying])
        return out

    def through(self, signal: str, read: Callable[[ClientUpdate], float]) -> Callable[[ClientUpdate], float]:
        """Return `read` as the client that sends the update would have it."""

        def hear_update(update: ClientUpdate) -> float:
            return float(self.hear(signal, np.array([update.client]), np.array([read(update)]))[0])

        return hear_update if self.liars.any() else read
