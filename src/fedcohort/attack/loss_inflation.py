"""Loss inflation: clients that claim higher losses, to gain weight or to be selected.

    told = factor * measured + shift   for each signal in `signals`, by ceil(fraction K) clients drawn once

FedMABA leaves it open (its Sec. VI): fairness methods believe the losses that they weigh by. `attack/weight` in the
metrics is the weight that liars had in the round's aggregate, and `attack/share` their share of those who arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.attack.base import Answers, Attack
from fedcohort.types import Ids

LOSSES = ("loss", "train_loss", "loss_post", "batch_loss", "val_loss", "robust_loss", "shadow_loss", "sce_loss")


@dataclass(frozen=True)
class LossInflation(Attack):
    """The attack, with its options.

    Attributes:
        fraction: of the clients that lie.
        factor, shift (nats): of the lie.
        signals: the words that they lie about.
    """

    fraction: float
    factor: float
    shift: float
    signals: Sequence[str]

    def __post_init__(self) -> None:
        ranges.number("fraction", self.fraction, "(0, 1]")
        ranges.number("factor", self.factor, "[0, inf)")
        ranges.number("shift", self.shift, "(-inf, inf)")
        ranges.words("signals", self.signals, *LOSSES)

    @property
    def about(self) -> frozenset[str]:
        return frozenset(self.signals)

    def liars(self, n_clients: int, rng: np.random.Generator) -> Ids:
        count = int(np.ceil(self.fraction * n_clients - 1e-9))
        return np.sort(rng.choice(n_clients, count, replace=False))

    def claim(self, signal: str, values: Answers) -> Answers:
        return self.factor * values + self.shift if signal in self.signals else values
