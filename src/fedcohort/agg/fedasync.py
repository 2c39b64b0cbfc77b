"""FedAsync: the global model moves towards the model of each client that arrives (Xie et al. 2019).

Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", arXiv 1903.03934, Algorithm 1.

    w <- (1 - alpha_i) w + alpha_i y_i,   alpha_i = alpha s(tau_i)

y_i is the model of client i, which started tau_i server steps ago; s is the function of the deadline
(deadline.staleness). The paper has one arrival per step, deadline=buffered deadline.buffer=1. Several arrivals of one
step are mixed in one after the other, in the order of time and id. Its proximal term is regulariser=prox. The rule
rests on the abstract and on released code; the full text was not read.

Departures from the paper:
- A selector's weights have no effect, but a client of weight 0 counts as not arrived.
- alpha does not decay over the rounds.
- The default of alpha is .6, as in released code.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.agg.base import Arrived, Direction, EquallyWeighted, Stateless
from fedcohort.component import LATE_UPDATES, RELATIVE_ADVICE, UNADVISED_WEIGHTS, Requirement


@dataclass(frozen=True)
class FedAsync(Stateless, EquallyWeighted[None]):
    """FedAsync, an aggregator that moves the global model towards the model of each client that arrives.

    Attributes:
        alpha: weight of a client's model if its update is of the current model.
    """

    alpha: float

    stacked: ClassVar[bool] = True
    sets_step_length: ClassVar[bool] = True
    requirements: ClassVar[frozenset[Requirement]] = frozenset({RELATIVE_ADVICE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({LATE_UPDATES, UNADVISED_WEIGHTS})

    def __post_init__(self) -> None:
        ranges.number("alpha", self.alpha, "(0, 1]")

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        """Return sum_i c_i (y_i - w_t), with c_i = alpha_i times the product of 1 - alpha_j over all later arrivals j.

        y_i is the model of client i in `arrived`, and alpha_i is `alpha` times the discount for staleness. `state` is
        None.
        """
        n_arrived = len(arrived.weights)
        mixing_rates = np.where(arrived.weights > 0, self.alpha * arrived.staleness_factors, 0.0)
        arrival_order = np.arange(n_arrived) if arrived.end_s is None else np.argsort(arrived.end_s, kind="stable")
        remaining_shares = np.cumprod((1.0 - mixing_rates[arrival_order])[::-1])[::-1]
        weights = np.empty(n_arrived)
        weights[arrival_order] = mixing_rates[arrival_order] * np.append(remaining_shares[1:], 1.0)
        return Direction(arrived.add_model_offsets(arrived.combine(weights).displacement, weights), weights), None
