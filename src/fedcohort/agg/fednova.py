"""FedNova: updates normalised by the length of each client's local training (Wang et al. 2020).

Wang, Liu, Liang, Joshi, Poor, "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization",
NeurIPS 2020, arXiv 2007.07481.

    a_i:  displacement of i's local steps under a constant gradient of 1, in learning rates (`training/response.py`)
    tau_eff:  sum_i p_i a_i / sum_i p_i, over the clients that arrived
    direction:  tau_eff sum_i p_i D_i / a_i
    SGD:  a_i = K_i steps
    momentum rho:  a_i = [K - rho (1 - rho^K) / (1 - rho)] / (1 - rho)
    proximal term:  a_i = (1 - (1 - eta mu)^K) / (eta mu)

With equal a_i it is FedAvg, whatever the sum of p_i: 1, unless a selector's weights are absolute. The paper's server
momentum is server=momentum.

Departures from the paper:
- With local Adam no a_i exists, and K_i replaces it.
- tau_eff=steps takes sum_i p_i K_i, the rule of the authors' code under a proximal term.
- The authors' code counts momentum and proximal term twice where both are on: K = 3, rho = 0.9, eta mu = 0.1 gives
  7.417 there, and 5.14 here, where the term is part of the loss.
- A client that made no step, or whose a_i is below 1e-12, is left out; the others share its weight.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import NO_BATCH_NORM, Requirement

LINEAR_OPTIMIZER_REQUIREMENT = Requirement(
    lambda facts: facts.components.client.linear,
    "{option} divides updates by the displacement of the local optimizer, which is not defined for {client}: the "
    "number of steps replaces it, which the paper does not cover (choose client=sgd)",
)


MIN_GRADIENT_COEFFICIENTS = 1e-12  # smaller a_i are left out


@dataclass(frozen=True)
class FedNova(StatelessSampleWeighted):
    """FedNova, an aggregator that normalises updates by the length of local training.

    Attributes:
        tau_eff: length of the normalised step: the mean of the clients' displacements under a constant gradient
            ("response"), or of their numbers of "steps".
    """

    tau_eff: str

    needs: ClassVar[frozenset[str]] = frozenset({"response_norm", "steps"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({LINEAR_OPTIMIZER_REQUIREMENT, NO_BATCH_NORM})
    stacked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("tau_eff", self.tau_eff, "response", "steps")

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        a, K = (np.asarray(arrived.outcome.signals[signal_name]) for signal_name in ("response_norm", "steps"))
        is_valid_update = np.isfinite(a) & (a >= MIN_GRADIENT_COEFFICIENTS) & (K > 0)
        p = np.where(is_valid_update, arrived.weights, 0.0)
        if not p.any():
            return arrived.combine(np.zeros(len(p))), None
        tau_eff = float(p[is_valid_update] @ (a if self.tau_eff == "response" else K)[is_valid_update]) / p.sum()
        p *= arrived.weights.sum() / p.sum()
        return arrived.combine(tau_eff * p / np.where(is_valid_update, a, 1.0)), None
