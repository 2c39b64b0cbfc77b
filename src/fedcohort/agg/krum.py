"""Krum: the update that is nearest to its neighbours (Blanchard et al. 2017).

Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
NeurIPS 2017, arXiv 1703.02757.

    score_i:  sum of ||D_i - D_j||^2 over the n - f - 2 other clients j that are nearest to i
    direction:  D_i of the client with the smallest score

f is the number of false updates among n that the method is to tolerate, n >= 2 f + 3. agg=multi_krum is the mean of the
n - f updates with the smallest scores. Clients have no weights. The paper was not read; the scores and both choices are
those of Flower, which gives the same numbers.

Departures from the paper:
- The paper compares one gradient per client. Here clients train locally, and their updates are compared.
- attackers=null takes the largest f that n arrivals allow, floor((n - 3) / 2).
- Where fewer than 2 f + 3 updates arrive, the score is of max(1, n - f - 2) neighbours, and nothing is guaranteed.
- One or two updates cannot be compared: the direction is their mean.
- Equal scores are ordered by id.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.agg.unweighted import Unweighted
from fedcohort.types import Population, Values


@dataclass(frozen=True)
class Krum(Unweighted):
    """Krum, an aggregator that takes the updates nearest to their neighbours.

    Attributes:
        attackers: number f of false updates to tolerate, or None for the largest number that the arrivals allow.
        keep: number of updates whose mean is taken, or None for all but f.
    """

    attackers: int | None
    keep: int | None

    def __post_init__(self) -> None:
        ranges.integer("attackers", self.attackers, "[0, inf)", allow_null=True)
        ranges.integer("keep", self.keep, "[1, inf)", allow_null=True)

    def init(self, population: Population, n_params: int) -> None:
        """Return None, as Krum keeps no state between rounds.

        Args:
            population: has the cohort size.
            n_params: number of model parameters P.

        Raises:
            OptionError: `attackers` is above 0, and the cohort is smaller than 2 x attackers + 3.
        """
        max_attackers = max(0, (population.cohort - 3) // 2)
        if self.attackers is not None and self.attackers > max_attackers:
            reason_for_range = f"as the cohort of {population.cohort} must be at least 2 x attackers + 3"
            allowed_text = f"an integer in [0, {max_attackers}], {reason_for_range}, or null"
            raise ranges.range_error("attackers", allowed_text, self.attackers)

    def combine(self, updates: Float[Tensor, "n p"]) -> tuple[Float[Tensor, "p"], Values]:
        n = len(updates)
        f = max(0, (n - 3) // 2) if self.attackers is None else self.attackers
        chosen_positions = np.arange(n)
        if n > 2:
            gram_matrix = (updates @ updates.T).cpu().numpy()
            squared_distances = np.maximum(np.diag(gram_matrix)[:, None] + np.diag(gram_matrix) - 2 * gram_matrix, 0.0)
            np.fill_diagonal(squared_distances, np.inf)
            update_scores = np.sort(squared_distances, axis=1)[:, : max(1, n - f - 2)].sum(axis=1)
            chosen_positions = np.argsort(update_scores, kind="stable")[
                : max(1, n - f) if self.keep is None else self.keep
            ]
        update_shares = np.bincount(chosen_positions, minlength=n) / len(chosen_positions)
        return torch.from_numpy(update_shares).to(updates) @ updates, update_shares
