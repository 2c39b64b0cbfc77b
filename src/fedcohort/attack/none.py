"""Everybody tells the truth."""

from dataclasses import dataclass

import numpy as np

from fedcohort.attack.base import Answers
from fedcohort.types import Ids


@dataclass(frozen=True)
class NoAttack:
    @property
    def about(self) -> frozenset[str]:
        return frozenset()

    def liars(self, n_clients: int, rng: np.random.Generator) -> Ids:
        return np.empty(0, dtype=np.int64)

    def told(self, signal: str, values: Answers) -> Answers:
        return values
