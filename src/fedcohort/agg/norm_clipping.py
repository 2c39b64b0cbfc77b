"""Norm clipping: updates are shortened to a largest length, then averaged (Sun et al. 2019).

Sun, Kairouz, Suresh, McMahan, "Can You Really Backdoor Federated Learning?", 2019, arXiv 1911.07963, Sec. 5.

    direction:  sum_i p_i D_i min(1, M / ||D_i||)

M bounds what a client can add to the step: p_i M. A large M is FedAvg. The logged weights of clients are
p_i min(1, M / ||D_i||), whose sum is below 1 where an update was shortened. The paper was not read; the rule is that of
its abstract and of public code, part of which sums the updates without dividing.

Departures from the paper:
- norm=null takes for M the median length of the round's updates; the length of a typical update is not known before.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import NO_BATCH_NORM, Requirement


@dataclass(frozen=True)
class NormClipping(StatelessSampleWeighted):
    """Norm clipping, an aggregator that shortens long updates before the mean.

    Attributes:
        norm: largest length of an update; None for the median length of the round's updates.
    """

    norm: float | None

    stacked: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({NO_BATCH_NORM})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("norm", self.norm, "(0, inf)", allow_null=True)

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        update_lengths = torch.stack([torch.linalg.vector_norm(u) for u in arrived.matrix]).cpu().numpy()
        M = float(np.median(update_lengths[arrived.weights > 0])) if self.norm is None else self.norm
        clipping_factors = np.divide(M, update_lengths, out=np.ones_like(update_lengths), where=update_lengths > M)
        return arrived.combine(arrived.weights * clipping_factors), None
