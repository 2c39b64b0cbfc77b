"""FedMGDA+: a step that lowers the loss of every client, from the directions of the updates (Hu et al. 2022).

Hu, Shaloudegi, Zhang, Yu, "Federated Learning Meets Multi-objective Optimization", IEEE TNSE 2022, arXiv 2006.11489.

    g_i:  -D_i / ||D_i||
    lambda_0:  p_i over the clients that arrived
    lambda:  argmin ||sum_i lambda_i g_i||^2 over sum_i lambda_i = 1, |lambda_i - lambda_0i| <= epsilon, lambda_i >= 0
    direction:  -eta_g sum_i lambda_i g_i

The lengths of the updates do not count. With epsilon = 1, d = sum_i lambda_i g_i has g_i . d >= ||d||^2 for every i;
epsilon = 0 keeps FedAvg's weights. A step is at most eta_g long, whatever the local learning rate and the distance to
the optimum. `decay` or `rescale` shorten it.

Departures from the paper:
- An update shorter than 1e-12, or one that a selector gives no weight, is left out.
- Where the shortest mixture is below 1e-8, no client's loss can be lowered without raising another's, and the direction
  is 0.
- decay (eta_g times decay^round) and rescale=mean_norm (times the mean length of the updates, as in FedAvg) are
  additions, and off by default.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import NO_BATCH_NORM, RELATIVE_ADVICE, UNRESTRICTED_UPDATE, Requirement
from fedcohort.maths.simplex import min_norm_weights

PLAIN_SERVER_REQUIREMENT = Requirement(
    lambda facts: facts.components.server.plain,
    "{option} chooses a step that lowers the loss of every client, but {server} changes the step's direction "
    "(choose server=sgd)",
)


MIN_UPDATE_LENGTH = 1e-12  # shorter updates have no direction
MIN_MIXTURE_LENGTH = 1e-8  # shorter mixtures of unit vectors count as 0


@dataclass(frozen=True)
class FedMgdaPlus(StatelessSampleWeighted):
    """FedMGDA+, an aggregator whose step lowers the loss of every client.

    Attributes:
        eta_g: length of the step if all updates have the same direction; otherwise the step is shorter.
        decay: factor of eta_g per round.
        epsilon: largest difference between a client's weight and its weight in FedAvg.
        rescale: length of the step: eta_g ("none"), or eta_g times the mean length of the updates ("mean_norm").
    """

    eta_g: float
    decay: float
    epsilon: float
    rescale: str

    requirements: ClassVar[frozenset[Requirement]] = frozenset({UNRESTRICTED_UPDATE, RELATIVE_ADVICE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({PLAIN_SERVER_REQUIREMENT, NO_BATCH_NORM})
    stacked: ClassVar[bool] = True
    sets_step_length: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("eta_g", self.eta_g, "(0, inf)")
        ranges.number("decay", self.decay, "(0, 1]")
        ranges.number("epsilon", self.epsilon, "[0, 1]")
        ranges.choice("rescale", self.rescale, "none", "mean_norm")

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        update_matrix = arrived.matrix.cpu().numpy()
        gram_matrix = update_matrix @ update_matrix.T  # numpy sees that it is symmetric, and does half the work
        update_norms = np.sqrt(np.diag(gram_matrix))
        mixture_weights = np.zeros(len(update_norms))
        is_usable_update = (update_norms >= MIN_UPDATE_LENGTH) & (arrived.weights > 0)
        usable_norms = update_norms[is_usable_update]
        if is_usable_update.any():
            Q = gram_matrix[np.ix_(is_usable_update, is_usable_update)] / np.outer(usable_norms, usable_norms)
            lambda_0 = arrived.weights[is_usable_update] / arrived.weights[is_usable_update].sum()
            mixture_weights[is_usable_update] = min_norm_weights(Q, lambda_0, self.epsilon) / usable_norms
        if float(torch.linalg.vector_norm(arrived.combine(mixture_weights).displacement)) < MIN_MIXTURE_LENGTH:
            return arrived.combine(np.zeros(len(mixture_weights))), None
        step_length = self.eta_g * self.decay**arrived.outcome.round
        if self.rescale == "mean_norm":
            step_length *= float(usable_norms.mean())
        return arrived.combine(step_length * mixture_weights), None
