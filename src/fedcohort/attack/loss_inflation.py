"""Loss inflation: clients that report higher losses, to gain weight or to be selected.

Not from a paper. FedMABA (Sec. VI) names it as open: fairness methods trust the losses that they weigh by.

    reported:  factor * measured + shift for each signal in `signals`, by ceil(fraction K) clients drawn once a run
    sums over samples:  factor^p * measured, p = 1 for losses (`loss_sum`), p = 2 for their squares (`loss_squares`)

A sum has no shift, which would depend on its number of samples; the sums of `class_loss` are those of shifted losses.
The metric attack/weight is the weight of liars in the
round's aggregate, attack/share their share of the arrivals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.attack.base import AttackByShare, ReportedValues

MEAN_LOSSES = ("loss", "train_loss", "loss_post", "batch_loss", "val_loss", "robust_loss", "shadow_loss", "sce_loss")
LOSS_EXPONENT_BY_SIGNAL = {"loss_sum": 1, "loss_squares": 2}  # by signal, of the loss whose sum it is
# rows of counts, sums of losses and of their squares by class, and the loss of other labels
CLASS_LOSS_SIGNAL = "class_loss"
LOSS_SIGNALS = (*MEAN_LOSSES, "loss_low", "loss_high", *LOSS_EXPONENT_BY_SIGNAL, CLASS_LOSS_SIGNAL)


@dataclass(frozen=True)
class LossInflation(AttackByShare):
    """Loss inflation, an attack in which some clients report higher losses than they measured.

    Attributes:
        factor: factor by which a reported loss is multiplied.
        shift: nats that are added to a reported loss, unless the signal is a single sum over samples.
        signals: names of the signals that these clients falsify.
    """

    factor: float
    shift: float
    signals: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("factor", self.factor, "[0, inf)")
        ranges.number("shift", self.shift, "(-inf, inf)")
        ranges.words("signals", self.signals, *LOSS_SIGNALS)

    @property
    def falsified_signals(self) -> frozenset[str]:
        signals_changed_by_shift = (
            frozenset(self.signals).difference(LOSS_EXPONENT_BY_SIGNAL) if self.shift else frozenset[str]()
        )
        return signals_changed_by_shift if self.factor == 1 else frozenset(self.signals)

    def notices(self, attack_name: str) -> Sequence[str]:
        """Return a start-up notice if no client attacks, or if factor and shift leave all reports unchanged.

        `attack_name` is the value of the option `attack`.
        """
        if self.falsified_signals:
            return super().notices(attack_name)
        options_text = f"attack.factor={self.factor:g} attack.shift={self.shift:g}"
        return (
            f"attack={attack_name} has no effect: {options_text} leaves {', '.join(sorted(self.signals))} as measured",
        )

    def falsify(self, signal: str, values: ReportedValues) -> ReportedValues:
        if signal not in self.signals:
            return values
        if signal == CLASS_LOSS_SIGNAL:
            sample_counts, loss_sums, squared_loss_sums = np.split(values[:, :-1], 3, axis=1)
            cross_terms = 2 * self.factor * self.shift * loss_sums
            false_squared_sums = self.factor**2 * squared_loss_sums + cross_terms + self.shift**2 * sample_counts
            return np.hstack(
                [
                    sample_counts,
                    self.factor * loss_sums + self.shift * sample_counts,
                    false_squared_sums,
                    values[:, -1:],
                ]
            )
        return (
            self.factor ** LOSS_EXPONENT_BY_SIGNAL[signal] * values
            if signal in LOSS_EXPONENT_BY_SIGNAL
            else self.factor * values + self.shift
        )
