"""The base of aggregators that treat all updates equally, whatever the clients' samples or a selector's weights."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort.agg.base import Arrived, Direction, EquallyWeighted, Stateless
from fedcohort.component import NO_BATCH_NORM, RELATIVE_ADVICE, UNADVISED_WEIGHTS, UNRESTRICTED_UPDATE, Requirement
from fedcohort.types import Values


@dataclass(frozen=True)
class Unweighted(Stateless, EquallyWeighted[None]):
    """An aggregator of updates without weights; a selector may exclude clients, but not weigh them."""

    stacked: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE, UNRESTRICTED_UPDATE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({UNADVISED_WEIGHTS, NO_BATCH_NORM})

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        included_positions, update_matrix = np.flatnonzero(arrived.weights > 0), arrived.matrix
        if len(included_positions) < len(update_matrix):
            update_matrix = update_matrix[torch.from_numpy(included_positions).to(update_matrix.device)]
        displacement, update_shares = self.combine(update_matrix)
        client_weights = np.zeros(len(arrived.weights))
        client_weights[included_positions] = update_shares
        return Direction(displacement, client_weights), None

    @abstractmethod
    def combine(self, updates: Float[Tensor, "n p"]) -> tuple[Float[Tensor, "p"], Values]:
        """Return the aggregate of `updates`, and the share of each update in it, [n]; the shares sum to 1."""
