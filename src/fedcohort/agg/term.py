"""TERM: Li, Beirami, Sanjabi, Smith, "Tilted Empirical Risk Minimization" (2021), tilted between clients.

    objective   (1/t) log sum_i p_i e^(t F_i)
    direction = sum_i w_i D_i,   w_i = p_i e^(t F_i(w_t)) / sum_j p_j e^(t F_j(w_t)) over those who arrived

t > 0 leans towards clients with high losses, t = 0 is FedAvg, t < 0 towards low ones (robust to outliers).

With `loss_cap`, and fewer than half of those who arrive lying, w_i / w_j <= (p_i / p_j) e^(t loss_cap median(F)) for
t > 0, whatever client i claims. For t < 0 no cap is needed: nobody can claim less than 0, and w_i / w_j <= (p_i / p_j)
e^(-t F_j).

Departures from the paper: its code divides by a running mean of e^(t F) that starts at 0, so that the first round's
weights sum to 2: here they sum to 1 every round. Clients without a finite loss are left out; where nobody has one, the
round is a plain mean. Only the loss before training is offered.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from fedcohort import ranges
from fedcohort.agg import losses
from fedcohort.agg.base import Arrived, Direction, sample_weights
from fedcohort.hook import Hook
from fedcohort.types import Ids, Population, Values


@dataclass(frozen=True)
class Term:
    """tilt: t, per nat. weighting: p_i, as FedAvg's. loss_cap: times the median, see `agg/losses.py`."""

    tilt: float
    weighting: str
    loss_cap: float | None

    needs: ClassVar[frozenset[str]] = frozenset({"loss"})
    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("tilt", self.tilt, "(-inf, inf)")
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")
        ranges.number("loss_cap", self.loss_cap, "[1, inf)", optional=True)

    @property
    def wants(self) -> frozenset[str]:
        return frozenset()

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return ()

    def init(self, population: Population, n_params: int) -> None:
        """No state."""

    def broadcast(self, state: None) -> Mapping[str, Tensor]:
        return {}

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        rows, F = losses.told(arrived, "loss", self.loss_cap)
        if not len(rows):
            return Direction(arrived.mean), None
        exponent = np.log(losses.shares(arrived, rows)) + self.tilt * F
        w = np.exp(exponent - exponent.max())
        return arrived.weighted(losses.over_all(arrived, rows, w / w.sum())), None
