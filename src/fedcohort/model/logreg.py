"""Multinomial logistic regression: logits = W x + b."""

import math
from dataclasses import dataclass

from fedcohort.model.base import Model, Network


@dataclass(frozen=True)
class LogReg(Model):
    """Logistic regression: one dense layer on the flattened sample; it has no options."""

    def build(self, shape: tuple[int, ...], n_classes: int) -> Network:
        from torch import nn  # noqa: PLC0415 - options are checked before torch is imported

        return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), n_classes))
