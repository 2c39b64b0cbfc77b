"""The contract of an attack: some clients report other numbers to the server than they measured.

The server's methods read the reported values; the federation's own metrics use the true ones.
"""

from typing import Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.component import Component
from fedcohort.types import Ids

ReportedValues = Float64[np.ndarray, "_n *_d"]


class Attack(Component, Protocol):
    """Which clients report false values of which signals; none by default."""

    @property
    def falsified_signals(self) -> frozenset[str]:
        """Return the names of the signals whose reports attackers falsify."""
        return frozenset()

    def attacker_ids(self, n_clients: int, rng: np.random.Generator) -> Ids:
        """Return the sorted ids of the clients that falsify their reports in all rounds.

        Args:
            n_clients: number of clients.
            rng: the generator of (seed, "attack").
        """
        return np.empty(0, dtype=np.int64)

    def falsify(self, signal: str, values: ReportedValues) -> ReportedValues:
        """Return the attackers' false reports of `signal`, with the shape of the true `values`: a row per attacker."""
        return values
