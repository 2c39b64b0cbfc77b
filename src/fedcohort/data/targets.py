"""What the label of a sample is: one class, or a class for each place of a sequence.

    one class        logits [B, C],     y [B];        the loss of a sample is its cross-entropy
    positions        logits [B, T, C],  y [B, T], -1 where nothing is asked (padding);
                     the loss of a sample is the mean over the places where something is asked

Functions of single targets, f(log_probs [N, C], y [N]) -> [N], are written once: `each` makes one of samples of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from jaxtyping import Int64

if TYPE_CHECKING:
    from torch import Tensor

    PerTarget = Callable[[Tensor, Tensor], Tensor]

Labels = Int64[np.ndarray, "_n *_places"]  # [N], or [N, T]
NOTHING = -1  # the label of a place where nothing is asked


class Targets(Protocol):
    """What labels are.

    Attributes:
        single: whether a sample has one class, so that samples can be told apart by it.
        lowest: the smallest number that a label can be.
    """

    @property
    def single(self) -> bool: ...

    @property
    def lowest(self) -> int: ...

    def each(self, function: "PerTarget") -> "PerTarget":
        """Return the function of samples that `function` of single targets makes: its mean over a sample's own."""
        ...

    def found(self, scores: "Tensor", y: "Tensor") -> "Tensor":
        """Return whether single targets have the highest of their scores, [N]."""
        ...

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the cross-entropy of each sample, in nats, [B]."""
        ...

    def loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean of `losses`."""
        ...

    def total(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Return the sum of `losses`."""
        ...

    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        """Return the class of each sample, and how many there are: 0 for all, of one, where samples have none."""
        ...


@dataclass(frozen=True)
class OneClass(Targets):
    """A sample has one class."""

    single: ClassVar[bool] = True
    lowest: ClassVar[int] = 0

    def each(self, function: "PerTarget") -> "PerTarget":
        return function

    def found(self, scores: "Tensor", y: "Tensor") -> "Tensor":
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
    """A sample has a class for each of its places.

    Attributes:
        never: classes that never count as found, whoever says them.
    """

    never: Sequence[int]

    single: ClassVar[bool] = False
    lowest: ClassVar[int] = NOTHING

    def each(self, function: "PerTarget") -> "PerTarget":
        return lambda table, y: self.mean(function(table.flatten(0, 1), self.flat(y)), y)

    def flat(self, y: "Tensor") -> "Tensor":
        """Return the labels one after the other, [B * T], with a class where nothing is asked, too."""
        return y.flatten().clamp(min=0)

    def mean(self, values: "Tensor", y: "Tensor") -> "Tensor":
        """Return each sample's mean over the places where something is asked, [B]; values: of all places, [B * T]."""
        asked = y > NOTHING
        return values.view(y.shape).where(asked, 0).sum(1) / asked.sum(1).clamp(min=1)

    def found(self, scores: "Tensor", y: "Tensor") -> "Tensor":
        hits = scores.argmax(1) == y
        for symbol in self.never:
            hits = hits & (y != symbol)
        return hits

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return self.each(lambda table, flat: _cross_entropy(table, flat, "none"))(logits, y)

    def loss(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return self.losses(logits, y).mean()

    def total(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        return self.losses(logits, y).sum()

    def strata(self, y: Labels, n_classes: int) -> tuple[Int64[np.ndarray, "n"], int]:
        return np.zeros(len(y), dtype=np.int64), 1


def _cross_entropy(logits: "Tensor", y: "Tensor", reduction: str) -> "Tensor":
    from torch.nn import functional as F  # noqa: PLC0415 - datasets are made before torch is imported

    return F.cross_entropy(logits, y, reduction=reduction)


ONE_CLASS = OneClass()
