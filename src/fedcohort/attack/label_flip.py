"""Label flip: attackers train on false labels.

Not from a paper; a common attack in studies of robust aggregation.

    label:  C - 1 - y of C classes (map=reverse), or uniform among the other classes (map=random)

The labels of training and validation samples are flipped once, before the run. All that an attacker reports is of the
false labels: losses, accuracies, and counts by class. Counts by class and attribute (`group_counts`) have the false
class and the true attribute. `loss`, `test_acc` and the noise rate of the client table are of the true labels, as is
the signal `noise_rate`, which only oracles read. With an odd C, map=reverse leaves the middle class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.attack.base import AttackByShare
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.types import Ids


@dataclass(frozen=True)
class LabelFlip(AttackByShare):
    """Label flip, an attack on the labels of training and validation samples.

    Attributes:
        map: false label of class y: C - 1 - y of C classes ("reverse"), or a uniform one of the other classes
            ("random").
        share_rows: share of an attacker's training samples, and of its validation samples, whose labels are false,
            rounded to a number of samples.
    """

    map: str
    share_rows: float

    falsifies_labels: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("map", self.map, "reverse", "random")
        ranges.number("share_rows", self.share_rows, "[0, 1]")

    def notices(self, attack_name: str) -> Sequence[str]:
        """Return a start-up notice if no client attacks, or no label is false; `attack_name` is the attack's name."""
        if self.share_rows:
            return super().notices(attack_name)
        return (f"attack={attack_name} has no effect with attack.share_rows=0",)

    def relabel(self, labels: Ids, n_classes: int, rng: np.random.Generator) -> Ids:
        false_label_rows = rng.permutation(len(labels))[: round(self.share_rows * len(labels))]
        label_shift = rng.integers(1, max(n_classes, 2), len(false_label_rows))
        new_labels, true_labels = labels.copy(), labels[false_label_rows]
        new_labels[false_label_rows] = (
            n_classes - 1 - true_labels if self.map == "reverse" else (true_labels + label_shift) % n_classes
        )
        return new_labels
