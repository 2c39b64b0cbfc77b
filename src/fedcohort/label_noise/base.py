"""The contract of label noise: how often a client's labels are wrong, and what a wrong label becomes."""

from abc import abstractmethod
from typing import Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.component import Component
from fedcohort.rng import Draws
from fedcohort.types import Ids


class LabelNoise(Component, Protocol):
    """How often clients' labels are wrong, and how."""

    @abstractmethod
    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients], once a run."""

    def flip(self, labels: Ids, rate: float, n_classes: int, rng: np.random.Generator) -> Ids:
        """Return the labels that a client sees: each becomes, with probability `rate`, another one.

        It is one of the other classes, all equally likely, unless the kind of noise says otherwise. Which labels are
        wrong is the same under every kind: one uniform number a label, drawn first, is below the rate.

        Args:
            labels: the client's true labels, int64 [n].
            rate: its probability that a label is wrong.
            n_classes: how many there are.
            rng: the client's own.
        """
        wrong = rng.random(len(labels)) < rate
        shift = rng.integers(1, max(n_classes, 2), len(labels))
        return np.where(wrong, (labels + shift) % n_classes, labels)  # of a single class, every label stays
