"""FedMGDA+: a step that lowers everybody's loss, from the updates' directions alone (Hu et al. 2020).

Hu, Shaloudegi, Zhang, Yu, "Federated Learning Meets Multi-objective Optimization" (2020). The length of an update does
not count.

    g_i = -D_i / ||D_i||,   lambda_0 = p_i over those who arrived
    lambda = argmin ||sum_i lambda_i g_i||^2,   sum_i lambda_i = 1,   |lambda_i - lambda_0i| <= epsilon,   lambda_i >= 0
    direction = -eta_g sum_i lambda_i g_i

With epsilon = 1, d = sum_i lambda_i g_i has g_i . d >= ||d||^2 for every i; epsilon = 0 keeps FedAvg's weights. A step
is at most eta_g long, whatever the local learning rate and however close the optimum: `decay` or `rescale` shrink it.

Departures from the paper: an update shorter than 1e-12, or one that a selector gives no weight, is left out; where the
shortest mixture is below 1e-8 nobody can gain without another's loss, and the direction is 0. `decay` (eta_g times
decay^round) and `rescale=mean_norm` (times the mean length of the updates, as FedAvg's steps) are ours, and off.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedcohort import ranges
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import FREE_UPDATE, NO_BATCH_NORM, RELATIVE_ADVICE, Requirement
from fedcohort.maths.min_norm import min_norm
from fedcohort.types import Ids, Population, Values

PLAIN_SERVER = Requirement(
    lambda run: run.parts.server.plain,
    "{option} makes a step that lowers everybody's loss; {server} makes another one of it",
)


SHORTEST = 1e-12  # an update that has a direction
STATIONARY = 1e-8  # length of a mixture of unit vectors that is taken for none


@dataclass(frozen=True)
class FedMgdaPlus(Aggregator[None]):
    """The aggregator, with its options.

    Attributes:
        eta_g: length of a step along a direction that all agree on, times decay^round.
        epsilon: how far a client's weight may move from lambda_0.
        rescale: "none", or times the "mean_norm" of the updates.
        weighting: as FedAvg's.
    """

    eta_g: float
    decay: float
    epsilon: float
    rescale: str
    weighting: str

    recommendations: ClassVar[frozenset[Requirement]] = frozenset({PLAIN_SERVER, NO_BATCH_NORM})
    stacked: ClassVar[bool] = True
    own_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("eta_g", self.eta_g, "(0, inf)")
        ranges.number("decay", self.decay, "(0, 1]")
        ranges.number("epsilon", self.epsilon, "[0, 1]")
        ranges.choice("rescale", self.rescale, "none", "mean_norm")
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({FREE_UPDATE, RELATIVE_ADVICE})

    def init(self, population: Population, n_params: int) -> None:
        """No state."""

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        D = arrived.matrix.cpu().numpy()
        gram = D @ D.T  # numpy sees that it is symmetric, and does half the work
        length = np.sqrt(np.diag(gram))
        share = np.zeros(len(length))
        here = (length >= SHORTEST) & (arrived.weights > 0)
        if here.any():
            Q = gram[np.ix_(here, here)] / np.outer(length[here], length[here])
            lambda_0 = arrived.weights[here] / arrived.weights[here].sum()
            share[here] = min_norm(Q, lambda_0, self.epsilon) / length[here]
        step = arrived.combine(share)
        if float(torch.linalg.vector_norm(step.displacement)) < STATIONARY:
            return arrived.combine(np.zeros(len(share))), None
        eta = self.eta_g * self.decay**arrived.outcome.round
        if self.rescale == "mean_norm":
            eta *= float(length[here].mean())
        return arrived.combine(eta * share), None
