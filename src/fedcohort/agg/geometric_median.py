"""RFA: the geometric median of the clients' updates, by the smoothed Weiszfeld algorithm (Pillutla et al. 2022).

Pillutla, Kakade, Harchaoui, "Robust Aggregation for Federated Learning", IEEE TSP 2022, arXiv 1912.13445.

    objective:  min_z sum_i alpha_i ||z - D_i||,  alpha_i the weight of client i
    start:  z = sum_i alpha_i D_i
    repeat:  beta_i = alpha_i / max(nu, ||z - D_i||),  z = sum_i beta_i D_i / sum_j beta_j
    direction:  z

The minimum stays bounded while false updates have less than half of the weight. A few iterations do not reach it: each
divides the pull of false updates that are far away by (1 - e) / e, e their share of the weight: by 4 for e = 0.2.
iterations=0 is FedAvg. The full text was not read; the algorithm and its defaults are those of the authors' code.

Departures from the paper:
- The code stops before the last iteration where the objective changes by less than 1e-6 of itself.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import NO_BATCH_NORM, RELATIVE_ADVICE, UNRESTRICTED_UPDATE, Requirement


@dataclass(frozen=True)
class GeometricMedian(StatelessSampleWeighted):
    """RFA, an aggregator that approximates the geometric median of the updates.

    Attributes:
        iterations: number of Weiszfeld iterations; 0 is FedAvg.
        nu: smallest distance by which a weight is divided, in the norm of updates.
    """

    iterations: int
    nu: float

    stacked: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE, UNRESTRICTED_UPDATE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({NO_BATCH_NORM})

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.integer("iterations", self.iterations, "[0, inf)")
        ranges.number("nu", self.nu, "(0, inf)")

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        z = arrived.combine(arrived.weights)
        for _ in range(self.iterations):
            # One row at a time, as the matrix of differences would be as large as that of the updates.
            distances = torch.stack([torch.linalg.vector_norm(update - z.displacement) for update in arrived.matrix])
            beta = arrived.weights / np.maximum(self.nu, distances.cpu().numpy())
            z = arrived.combine(beta / beta.sum())
        return z, None
