"""Labels of samples: one class per sample, or one class per position of a sequence.

    one class        logits [B, C],     y [B];        the loss of a sample is its cross-entropy
    positions        logits [B, T, C],  y [B, T], -1 at positions without a label (padding);
                     the loss of a sample is the mean over its labelled positions

A function of single targets, f(log_probs [N, C], y [N]) -> [N], is written once: `per_sample` turns it into a function
of samples.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from jaxtyping import Int64

if TYPE_CHECKING:
    from torch import Tensor

    PerTarget = Callable[[Tensor, Tensor], Tensor]

Labels = Int64[np.ndarray, "_n *_places"]  # [N], or [N, T]
UNLABELLED = -1  # the label of a position without a label


class Targets(Protocol):
    """The kind of labels that samples have.

    Attributes:
        single: whether a sample has exactly one class.
        lowest: the smallest value of a label.
    """

    single: ClassVar[bool]
    lowest: ClassVar[int]

    @abstractmethod
    def per_sample(self, function: "PerTarget") -> "PerTarget":
        """Return a function of samples: the mean of `function`, of single targets, over a sample's labelled targets."""

    @abstractmethod
    def hits(self, scores: "Tensor", y: "Tensor") -> "Tensor":
        """Return which single targets have the highest score, bool [N]: the correct predictions."""

    @abstractmethod
    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the cross-entropy of each sample, in nats, [B]."""

    def loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean of the samples' cross-entropies, in nats."""
        return self.losses(logits, y).mean()

    def total(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the sum of the samples' cross-entropies, in nats."""
        return self.losses(logits, y).sum()

    @abstractmethod
    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        """Return the class of each sample and the number of classes; one class, 0, if samples have several targets."""


@dataclass(frozen=True)
class OneClass(Targets):
    """Labels of classification: one class per sample."""

    single: ClassVar[bool] = True
    lowest: ClassVar[int] = 0

    def per_sample(self, function: "PerTarget") -> "PerTarget":
        return function

    def hits(self, scores: "Tensor", y: "Tensor") -> "Tensor":
        return scores.argmax(1) == y

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return _cross_entropy(logits, y, "none")

    def loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return _cross_entropy(logits, y, "mean")

    def total(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return _cross_entropy(logits, y, "sum")

    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        return y, n_classes


@dataclass(frozen=True)
class Positions(Targets):
    """A sample has a class for each position.

    Attributes:
        never: classes that never count as correctly predicted.
    """

    never: Sequence[int]

    single: ClassVar[bool] = False
    lowest: ClassVar[int] = UNLABELLED

    def per_sample(self, function: "PerTarget") -> "PerTarget":
        return lambda table, y: self.mean(function(table.flatten(0, 1), self.flat(y)), y)

    def flat(self, y: "Tensor") -> "Tensor":
        """Return the labels of all positions, [B * T]; unlabelled positions get class 0."""
        return y.flatten().clamp(min=0)

    def mean(self, values: "Tensor", y: "Tensor") -> "Tensor":
        """Return each sample's mean over its labelled positions, [B]; values: of all positions, [B * T]."""
        labelled = y > UNLABELLED
        return values.view(y.shape).where(labelled, 0).sum(1) / labelled.sum(1).clamp(min=1)

    def hits(self, scores: "Tensor", y: "Tensor") -> "Tensor":
        is_correct = scores.argmax(1) == y
        for symbol in self.never:
            is_correct = is_correct & (y != symbol)
        return is_correct

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return self.per_sample(lambda table, flat: _cross_entropy(table, flat, "none"))(logits, y)

    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        return np.zeros(len(y), dtype=np.int64), 1


def _cross_entropy(logits: "Tensor", y: "Tensor", reduction: str) -> "Tensor":
    from torch.nn import functional as F  # noqa: PLC0415 - datasets are made before torch is imported

    return F.cross_entropy(logits, y, reduction=reduction)


ONE_CLASS = OneClass()
