"""Local SGD, `torch.optim.SGD` on the flat parameter.

Without momentum, weight decay and clipping the step is y <- y - lr g, and the engine takes it without an optimizer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedcohort import ranges
from fedcohort.client.base import check_schedule, check_work, scheduled


@dataclass(frozen=True)
class Sgd:
    """lr, decay, milestones, factor: the schedule over rounds. The rest as in `client.base.Client`."""

    lr: float
    decay: float
    milestones: Sequence[int]
    factor: float
    momentum: float
    weight_decay: float
    epochs: int
    steps: int | None
    batch: int | None
    clip: float | None

    def __post_init__(self) -> None:
        check_schedule(self.lr, self.decay, self.milestones, self.factor)
        check_work(self.epochs, self.steps, self.batch, self.clip)
        ranges.number("momentum", self.momentum, "[0, 1)")
        ranges.number("weight_decay", self.weight_decay, "[0, inf)")

    @property
    def plain(self) -> bool:
        return self.momentum == 0 and self.weight_decay == 0 and self.clip is None

    def lr_at(self, round: int) -> float:
        return scheduled(self.lr, self.decay, self.milestones, self.factor, round)

    def optimizer(self, y: torch.nn.Parameter, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD([y], lr=lr, momentum=self.momentum, weight_decay=self.weight_decay)
