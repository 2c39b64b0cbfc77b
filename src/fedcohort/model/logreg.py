"""Multinomial logistic regression: logits = W x + b."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedcohort.model.base import Model

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class LogReg(Model):
    def build(self, shape: tuple[int, ...], n_classes: int) -> "nn.Module":
        from torch import nn  # noqa: PLC0415 - options are checked before torch is imported

        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), n_classes))
