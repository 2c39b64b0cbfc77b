"""Loss inflation: clients that claim higher losses, to gain weight or to be selected.

    told = factor * measured + shift   for each signal in `signals`, by ceil(fraction K) clients drawn once
    told = factor^p * measured         for sums over samples: of losses (p = 1, `loss_sum`) and their squares (p = 2)

A sum has no shift: what it would be depends on how many samples it is of.

FedMABA leaves it open (its Sec. VI): fairness methods believe the losses that they weigh by. `attack/weight` in the
metrics is the weight that liars had in the round's aggregate, and `attack/share` their share of those who arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.attack.base import Answers, Attack
from fedcohort.types import Ids

MEANS = ("loss", "train_loss", "loss_post", "batch_loss", "val_loss", "robust_loss", "shadow_loss", "sce_loss")
POWERS = {"loss_sum": 1, "loss_squares": 2}  # of sums over samples
LOSSES = (*MEANS, "loss_low", "loss_high", *POWERS)


@dataclass(frozen=True)
class LossInflation(Attack):
    """The attack, with its options.

    Attributes:
        fraction: of the clients that lie.
        factor: of the lie about a loss.
        shift: in nats, of the lie about a loss that is no sum.
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
        shifted = frozenset(self.signals).difference(POWERS) if self.shift else frozenset[str]()
        return shifted if self.factor == 1 else frozenset(self.signals)

    def notices(self, choice: str) -> Sequence[str]:
        """Say where liars tell the truth."""
        if self.about:
            return ()
        told = f"attack.factor={self.factor:g} attack.shift={self.shift:g}"
        return (f"attack={choice} has no effect: {told} leaves {', '.join(sorted(self.signals))} as measured",)

    def liars(self, n_clients: int, rng: np.random.Generator) -> Ids:
        count = int(np.ceil(self.fraction * n_clients - 1e-9))
        return np.sort(rng.choice(n_clients, count, replace=False))

    def claim(self, signal: str, values: Answers) -> Answers:
        if signal not in self.signals:
            return values
        return self.factor ** POWERS[signal] * values if signal in POWERS else self.factor * values + self.shift
