"""The contract of label noise: each client's probability of a wrong label, and the wrong labels."""

from abc import abstractmethod
from typing import Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort.component import Component
from fedcohort.rng import Draws
from fedcohort.types import Ids


class LabelNoise(Component, Protocol):
    """A label noise, which draws each client's rate of wrong labels, and changes labels at this rate."""

    @abstractmethod
    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients], once per run.

        `draws` are the run's random numbers.
        """

    def flip(self, labels: Ids, noise_rate: float, n_classes: int, rng: np.random.Generator) -> Ids:
        """Return the labels that a client sees, int64 [n]: each is wrong with probability `noise_rate`.

        By default a wrong label is uniform over the other classes. Every label noise first draws one uniform number per
        label, and the label is wrong if this number is below the rate. With equal rates the same labels are therefore
        wrong under every label noise.

        Args:
            labels: true labels of the client, int64 [n].
            noise_rate: probability that a label is wrong.
            n_classes: number of classes.
            rng: random generator of this client.
        """
        is_wrong_label = rng.random(len(labels)) < noise_rate
        class_shift = rng.integers(1, max(n_classes, 2), len(labels))
        return np.where(is_wrong_label, (labels + class_shift) % n_classes, labels)  # with a single class, labels stay
