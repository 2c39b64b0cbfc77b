"""REFL's aggregation: late updates weigh more if they differ more from the fresh ones (Abdelmoniem et al. 2023).

Abdelmoniem, Sahu, Canini, Fahmy, "REFL: Resource-Efficient Federated Learning", EuroSys 2023, arXiv 2111.01108, its
staleness-aware aggregation (SAA).

    fresh update:  v_i = 1
    late update:  v_i = (1 - b) / (tau_i + 1) + b (1 - exp(-L_i / max_j L_j))
    L_i:  |m - (U_i + n m) / (n + 1)|^2 / |m|^2
    direction:  sum_i v_i u_i U_i / sum_i v_i u_i

Here m is the mean of the n fresh updates, and j runs over the late updates of the round. tau_i is the number of rounds
since client i received its model. Without a fresh update, with m = 0 or with all L_j = 0 the second term is 0. The
discount of the deadline (deadline.staleness) has no effect. The rule rests on released code. The full text was not
read.

Departures from the paper:
- The code divides the exponential by 10, so that an update without any deviation keeps .9 b.
- tau counts from the download; in the code it begins at 1.
- Where all weights are 0, which b = 1 without a fresh update gives, they are u_i / (tau_i + 1).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import LATE_UPDATES, RELATIVE_ADVICE, Requirement
from fedcohort.types import Values


@dataclass(frozen=True)
class Refl(StatelessSampleWeighted):
    """REFL, an aggregator that gives late updates more weight if they differ more from the fresh ones.

    Attributes:
        b: share of the deviation from the fresh updates in the weight of a late update.
    """

    b: float

    stacked: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({LATE_UPDATES})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("b", self.b, "[0, 1]")

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        staleness = arrived.outcome.staleness
        undiscounted_weights = arrived.weights / arrived.staleness_factors
        fresh_distances = self._distances_from_fresh_mean(arrived, (staleness == 0) & (undiscounted_weights > 0))
        is_late_update = (staleness > 0) & (undiscounted_weights > 0)
        max_late_distance = float(fresh_distances[is_late_update].max(initial=0.0))
        closeness = np.exp(-fresh_distances / max_late_distance) if max_late_distance > 0 else np.ones(len(staleness))
        staleness_factors = np.where(staleness > 0, (1 - self.b) / (staleness + 1) + self.b * (1 - closeness), 1.0)
        weights = staleness_factors * undiscounted_weights
        if not weights.any():  # b = 1 without a deviation, as without a fresh update
            weights = undiscounted_weights / (staleness + 1)
        return arrived.combine(weights / weights.sum()), None

    @staticmethod
    def _distances_from_fresh_mean(arrived: Arrived, is_fresh_update: np.ndarray) -> Values:
        """Return |U_i - u|^2 / ((n + 1)^2 |u|^2) of each client, [m], with the mean u of fresh updates; 0 without one.

        Args:
            arrived: the round's updates U_i.
            is_fresh_update: which of the updates are fresh, bool [m]; n of them.
        """
        n_fresh_updates = int(is_fresh_update.sum())
        fresh_mean = arrived.matrix[torch.from_numpy(is_fresh_update).to(arrived.matrix.device)].mean(0)
        squared_mean_length = float(fresh_mean @ fresh_mean)
        if not squared_mean_length > 0:  # NaN without a fresh update
            return np.zeros(len(is_fresh_update))
        update_distances = torch.linalg.vector_norm(arrived.matrix - fresh_mean, dim=1).cpu().numpy()
        return np.asarray(update_distances**2 / ((n_fresh_updates + 1) ** 2 * squared_mean_length))
