"""The contract of a model: it builds the network for a dataset's shape.

torch is imported by `build`, so that options out of their ranges are refused before seconds of imports.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from fedcohort import ranges
from fedcohort.component import Component
from fedcohort.errors import IncompatibleConfig

if TYPE_CHECKING:
    from torch import nn


class Model(Component, Protocol):
    """A network for any data.

    Attributes:
        reads_symbols: whether inputs are symbols, integers of any type, which it looks up; else numbers in float32.
        per_position: whether it has logits for each place of a sequence, [B, length, n_classes].
    """

    @property
    def reads_symbols(self) -> bool:
        return False

    @property
    def per_position(self) -> bool:
        return False

    @abstractmethod
    def build(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        """A network from inputs [B, *shape] to logits [B, n_classes]. Raises `IncompatibleConfig` for other shapes."""


def require_images(word: str, shape: tuple[int, ...], least: int) -> tuple[int, int, int]:
    """Return channels, height and width of the data that model=`word` is for; `least`: pixels of the shorter side.

    Raises `IncompatibleConfig` for data that aren't images, or smaller ones.
    """
    if len(shape) != 3 or min(shape[1:]) < least:
        raise IncompatibleConfig(
            f"model={word} needs images [channels, height, width] of at least {least}x{least}, the inputs are "
            f"{list(shape)}"
        )
    return shape


def check_norm(norm: str, groups: int, channels: Iterable[int]) -> None:
    """Check `norm`, one of group and batch, and that `groups` divides the channels of every layer that it norms."""
    ranges.choice("norm", norm, "group", "batch")
    ranges.integer("groups", groups, "[1, inf)")
    widths = sorted(set(channels))
    if norm == "group" and any(width % groups for width in widths):
        known = ", ".join(map(str, widths))
        raise ranges.refuse("groups", f"a divisor of every layer's channels ({known})", groups)
