"""The contract of local optimisation, and the learning-rate schedule over rounds that all kinds share."""

from collections.abc import Sequence
from typing import Protocol

import torch

from fedcohort import ranges


class Client(Protocol):
    """epochs: local epochs, unless `steps` gives a number of mini-batch steps. batch: samples, None for all at once.

    clip: largest gradient norm, None for no clipping. plain: the step is exactly y <- y - lr g.
    """

    epochs: int
    steps: int | None
    batch: int | None
    clip: float | None

    @property
    def plain(self) -> bool: ...

    def lr_at(self, round: int) -> float:
        """The local learning rate of a round."""
        ...

    def optimizer(self, y: torch.nn.Parameter, lr: float) -> torch.optim.Optimizer:
        """A fresh optimizer on the flat parameter: clients keep no optimizer state between rounds."""
        ...


def check_work(epochs: object, steps: object, batch: object, clip: object) -> None:
    ranges.integer("epochs", epochs, "[1, inf)")
    ranges.integer("steps", steps, "[1, inf)", optional=True)
    ranges.integer("batch", batch, "[1, inf)", optional=True)
    ranges.number("clip", clip, "(0, inf)", optional=True)


def check_schedule(lr: object, decay: object, milestones: object, factor: object) -> None:
    ranges.number("lr", lr, "(0, inf)")
    ranges.number("decay", decay, "(0, 1]")
    ranges.integers("milestones", milestones, "[1, inf)")
    ranges.number("factor", factor, "(0, 1]")


def scheduled(lr: float, decay: float, milestones: Sequence[int], factor: float, round: int) -> float:
    """lr * decay^round * factor^(milestones passed); a milestone r counts from round r on (rounds from 0)."""
    return float(lr * decay**round * factor ** sum(round >= milestone for milestone in milestones))
