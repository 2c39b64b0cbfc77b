"""The contract of an attack: some clients tell the server other numbers than they measured.

The server's methods see what they are told; the federation's own metrics stay true.
"""

from typing import Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.component import Component
from fedcohort.types import Ids

Answers = Float64[np.ndarray, "_n *_d"]


class Attack(Component, Protocol):
    """Who lies about what; nobody, unless a method says otherwise."""

    @property
    def about(self) -> frozenset[str]:
        """The signals that liars lie about."""
        return frozenset()

    def liars(self, n_clients: int, rng: np.random.Generator) -> Ids:
        """Draw who lies, for the whole run: sorted ids; rng: keyed by (seed, "attack")."""
        return np.empty(0, dtype=np.int64)

    def claim(self, signal: str, values: Answers) -> Answers:
        """Return what liars say of `signal` where `values` are true: a number or a row of numbers each."""
        return values
