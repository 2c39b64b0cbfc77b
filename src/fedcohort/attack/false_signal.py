"""False signals: attackers report false values of any signal that a selector or an aggregator reads.

Not from a paper.

    mode=constant:  value, whatever was measured
    mode=scale:  value * measured
    mode=invert:  1 / measured, which reverses the order of positive values; 0 stays 0

Signals that clients send when they register (`n_train`, `label_counts`, expected times) are falsified as well. Numbers
of samples stay integers from 0, rounded up. Values that the server measures or computes from updates cannot be false.
An attack on updates (attack=sign_flip and others) changes the signals that are computed from them. Weights by samples
and times on the virtual clock are the true ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.attack.base import AttackByShare, ReportedValues

FALSIFIABLE_SIGNALS = (
    *("availability_forecast", "batch_loss", "class_loss", "compressed_gradient", "dht", "expected_down_s"),
    *("expected_s", "expected_unit_s", "expected_up_s"),
    *("grad_norm", "gradient_moments", "gradient_std", "group_counts", "label_counts", "loss", "loss_count"),
    *("loss_high", "loss_low", "loss_post", "loss_squares", "loss_sum", "n_train", "n_used", "pass_units"),
    *("response_norm", "robust_loss", "sce_loss", "shadow_loss", "steps", "train_loss", "train_loss_std"),
    *("trained_norm", "val_accuracy", "val_loss"),
)
MAX_SAMPLE_COUNT = 2**31  # a larger false number of samples would overflow in sums over clients


@dataclass(frozen=True)
class FalseSignal(AttackByShare):
    """False signals, an attack on reports.

    Attributes:
        signals: names of the signals that attackers falsify; None for all that clients report.
        mode: the report is `value` ("constant"), `value` times the measured value ("scale"), or the reciprocal of the
            measured value ("invert").
        value: the false value or the factor; it has no effect with mode=invert.
    """

    signals: Sequence[str] | None
    mode: str
    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signals is not None:
            ranges.words("signals", self.signals, *FALSIFIABLE_SIGNALS)
        ranges.choice("mode", self.mode, "constant", "scale", "invert")
        ranges.number("value", self.value, "[0, inf)")

    @property
    def falsified_signals(self) -> frozenset[str]:
        return frozenset(FALSIFIABLE_SIGNALS if self.signals is None else self.signals)

    def falsify(self, signal: str, values: ReportedValues) -> ReportedValues:
        if signal not in self.falsified_signals:
            return values
        false_values: ReportedValues = np.full(values.shape, float(self.value))
        if self.mode == "scale":
            false_values = self.value * values
        elif self.mode == "invert":
            false_values = np.divide(1.0, values, out=np.zeros(values.shape), where=values != 0)
        if np.issubdtype(values.dtype, np.integer):
            false_values = np.clip(np.ceil(false_values), 0, MAX_SAMPLE_COUNT).astype(values.dtype)
        return false_values
