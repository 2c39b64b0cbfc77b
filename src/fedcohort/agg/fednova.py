"""FedNova: updates are divided by how far each client's optimizer goes, whatever it has done (Wang et al. 2020).

Wang, Liu, Liang, Joshi, Poor, "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization"
(NeurIPS 2020).

    a_i = how far client i's local steps go for a gradient that stays 1, in local learning rates (training/response.py)
    direction = tau_eff sum_i p_i D_i / a_i,   tau_eff = sum_i p_i a_i / sum_i p_i,   p_i over those who arrived

a_i = K_i steps for plain SGD; [K - rho (1 - rho^K) / (1 - rho)] / (1 - rho) with momentum rho; (1 - (1 - eta mu)^K) /
(eta mu) with a proximal term. Equal a_i make it FedAvg, whatever p_i sum to: 1, unless a selector's advice is absolute.
The paper's server momentum is server=momentum.

Departures from the paper: with local Adam no a_i exists, K_i stands in for it. The authors' code takes sum_i p_i K_i
for tau_eff under a proximal term (`tau_eff=steps`), and counts momentum and proximal term twice where both are on:
K = 3, rho = 0.9, eta mu = 0.1 gives 7.417 there, and 5.14 here, where the term is in the loss. A client that made no
step, or whose a_i is below 1e-12, is left out; the others share its weight.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.component import NO_BATCH_NORM, Requirement
from fedcohort.types import Ids, Population, Values

LINEAR_CLIENT = Requirement(
    lambda run: run.parts.client.linear,
    "{option} divides updates by how far the local optimizer goes, which no number tells for {client}: its steps are "
    "counted instead, which the paper doesn't cover",
)


LEAST = 1e-12  # an a_i that can be divided by


@dataclass(frozen=True)
class FedNova(Aggregator[None]):
    """The aggregator, with its options.

    Attributes:
        tau_eff: the mean of "response" (a_i) or of "steps" (K_i).
        weighting: as FedAvg's.
    """

    tau_eff: str
    weighting: str

    needs: ClassVar[frozenset[str]] = frozenset({"response_norm", "steps"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({LINEAR_CLIENT, NO_BATCH_NORM})
    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.choice("tau_eff", self.tau_eff, "response", "steps")
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")

    def init(self, population: Population, n_params: int) -> None:
        """No state."""

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        a, K = (np.asarray(arrived.outcome.signals[word]) for word in ("response_norm", "steps"))
        usable = np.isfinite(a) & (a >= LEAST) & (K > 0)
        p = np.where(usable, arrived.weights, 0.0)
        if not p.any():
            return arrived.combine(np.zeros(len(p))), None
        tau_eff = float(p[usable] @ (a if self.tau_eff == "response" else K)[usable]) / p.sum()
        p *= arrived.weights.sum() / p.sum()
        return arrived.combine(tau_eff * p / np.where(usable, a, 1.0)), None
