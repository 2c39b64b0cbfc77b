"""Local Adam, `torch.optim.Adam` on the flat parameter (FLASH trains with it)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedcohort import ranges
from fedcohort.client.base import check_schedule, check_work, scheduled


@dataclass(frozen=True)
class Adam:
    """beta1, beta2, eps, weight_decay: of Adam. The rest as in `client.base.Client`."""

    lr: float
    decay: float
    milestones: Sequence[int]
    factor: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    epochs: int
    steps: int | None
    batch: int | None
    clip: float | None

    def __post_init__(self) -> None:
        check_schedule(self.lr, self.decay, self.milestones, self.factor)
        check_work(self.epochs, self.steps, self.batch, self.clip)
        ranges.number("beta1", self.beta1, "[0, 1)")
        ranges.number("beta2", self.beta2, "[0, 1)")
        ranges.number("eps", self.eps, "(0, inf)")
        ranges.number("weight_decay", self.weight_decay, "[0, inf)")

    @property
    def plain(self) -> bool:
        return False

    def lr_at(self, round: int) -> float:
        return scheduled(self.lr, self.decay, self.milestones, self.factor, round)

    def optimizer(self, y: torch.nn.Parameter, lr: float) -> torch.optim.Optimizer:
        betas = (self.beta1, self.beta2)
        return torch.optim.Adam([y], lr=lr, betas=betas, eps=self.eps, weight_decay=self.weight_decay)
