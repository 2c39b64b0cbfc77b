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

    TargetFunction = Callable[[Tensor, Tensor], Tensor]

Labels = Int64[np.ndarray, "_n *_places"]  # [N], or [N, T]
UNLABELLED_POSITION = -1  # the label of a position without a label


class Targets(Protocol):
    """The structure of labels: one class per sample, or one class per position of a sequence.

    Attributes:
        single: whether a sample has exactly one class.
        min_label: the smallest value of a label.
    """

    single: ClassVar[bool]
    min_label: ClassVar[int]

    @abstractmethod
    def per_sample(self, target_function: "TargetFunction") -> "TargetFunction":
        """Return a function of log-probabilities and labels: the mean of `target_function` over each sample's targets.

        Args:
            target_function: function of log-probabilities [N, C] and classes [N] of N single targets that returns [N].
        """

    @abstractmethod
    def mark_correct(self, class_scores: "Tensor", y: "Tensor") -> "Tensor":
        """Return whether each of N single targets is predicted correctly, its class having the highest score, bool [N].

        Args:
            class_scores: logits or probabilities, [N, C].
            y: classes, [N].
        """

    @abstractmethod
    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the cross-entropy of each sample, in nats, [B]; over a sample's positions it is the mean.

        Args:
            logits: outputs of the network, [B, C], or [B, positions, C].
            y: labels, [B], or [B, positions].
        """

    def loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean over samples of `losses` in nats, for the same logits and labels `y`."""
        return self.losses(logits, y).mean()

    def summed_sample_loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the sum over samples of `losses` in nats, for the same logits and labels `y`."""
        return self.losses(logits, y).sum()

    @abstractmethod
    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        """Return the class of each sample, and the number of classes, by which samples are grouped.

        Samples with several targets are one group: class 0 of 1.

        Args:
            y: labels, [n], or [n, positions].
            n_classes: number of classes of a target.
        """


@dataclass(frozen=True)
class OneClassTargets(Targets):
    """Labels of classification: one class per sample."""

    single: ClassVar[bool] = True
    min_label: ClassVar[int] = 0

    def per_sample(self, target_function: "TargetFunction") -> "TargetFunction":
        return target_function

    def mark_correct(self, class_scores: "Tensor", y: "Tensor") -> "Tensor":
        return class_scores.argmax(1) == y

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return _cross_entropy(logits, y, "none")

    def loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return _cross_entropy(logits, y, "mean")

    def summed_sample_loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return _cross_entropy(logits, y, "sum")

    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        return y, n_classes


@dataclass(frozen=True)
class PerPositionTargets(Targets):
    """Labels of sequences: one class per position of a sample.

    Attributes:
        never_correct_classes: classes, such as unknown words, whose predictions never count as correct.
    """

    never_correct_classes: Sequence[int]

    single: ClassVar[bool] = False
    min_label: ClassVar[int] = UNLABELLED_POSITION

    def per_sample(self, target_function: "TargetFunction") -> "TargetFunction":
        return lambda log_probs, y: self.average(target_function(log_probs.flatten(0, 1), self.flatten(y)), y)

    def flatten(self, y: "Tensor") -> "Tensor":
        """Return the labels `y` [B, T] of all positions as a vector, [B * T]; unlabelled positions get class 0."""
        return y.flatten().clamp(min=0)

    def average(self, position_values: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean of `position_values` over each sample's labelled positions, [B].

        Args:
            position_values: value of each position of all samples, [B * T].
            y: labels, [B, T].
        """
        is_labelled = y > UNLABELLED_POSITION
        return position_values.view(y.shape).where(is_labelled, 0).sum(1) / is_labelled.sum(1).clamp(min=1)

    def mark_correct(self, class_scores: "Tensor", y: "Tensor") -> "Tensor":
        is_correct = class_scores.argmax(1) == y
        for wrong_class in self.never_correct_classes:
            is_correct = is_correct & (y != wrong_class)
        return is_correct

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return self.per_sample(lambda class_scores, labels: _cross_entropy(class_scores, labels, "none"))(logits, y)

    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        return np.zeros(len(y), dtype=np.int64), 1


def _cross_entropy(logits: "Tensor", y: "Tensor", reduction: str) -> "Tensor":
    from torch.nn import functional as F  # noqa: PLC0415 - datasets are made before torch is imported

    return F.cross_entropy(logits, y, reduction=reduction)


ONE_CLASS = OneClassTargets()
