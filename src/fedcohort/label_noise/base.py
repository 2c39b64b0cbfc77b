"""The contract of label noise, and the flip that all kinds share."""

from abc import abstractmethod
from typing import Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.part import Part
from fedcohort.rng import Draws
from fedcohort.types import Ids


class LabelNoise(Part, Protocol):
    """How often clients' labels are wrong."""

    @abstractmethod
    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients], once a run."""


def flip(labels: Ids, rate: float, n_classes: int, rng: np.random.Generator) -> Ids:
    """Make of each label, with probability `rate`, one of the other classes, all equally likely."""
    wrong = rng.random(len(labels)) < rate
    shift = rng.integers(1, max(n_classes, 2), len(labels))
    return np.where(wrong & (n_classes > 1), (labels + shift) % n_classes, labels)
