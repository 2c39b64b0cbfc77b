"""FedBuff: the sum of the buffered updates, each weighed by its staleness, over their number (Nguyen et al. 2022).

Nguyen, Malik, Zhan, Yousefpour, Rabbat, Malek, Huba, "Federated Learning with Buffered Asynchronous Aggregation",
AISTATS 2022, arXiv 2106.06639, Algorithm 1.

    direction:  1/B sum_i u_i s(tau_i) U_i over the B clients of the buffer

U_i is the update from the model that client i received, and tau_i the number of server steps since then. u_i is 1, or
n_i over the mean of the buffer if `weighting` is not uniform. The function s is that of the deadline
(deadline.staleness), (1 + tau)^-1/2 in the paper. The sum is divided by B and not by the sum of the s(tau_i), so that a
buffer of old updates moves the model less. agg=fedavg with the same deadline divides by the sum. The rule rests on the
abstract, on summaries and on released code; the full text was not read.

Departures from the paper:
- A selector's weights replace u_i.
- A buffer with fewer updates than `deadline.buffer` is divided by the number that it has.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted
from fedcohort.component import LATE_UPDATES, Requirement


@dataclass(frozen=True)
class FedBuff(StatelessSampleWeighted):
    """FedBuff, an aggregator that takes the mean of the buffered updates times their discounts for staleness.

    Its option `weighting` is that of `SampleWeighted`.
    """

    sets_step_length: ClassVar[bool] = True
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({LATE_UPDATES})

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        """Return 1/B sum_i u_i s_i U_i over the B buffered updates U_i, with weights u_i and discounts s_i.

        The weight p_i in `arrived` is u_i s_i divided by the sum of these products, so the result is (sum_i p_i U_i) /
        (sum_i p_i / s_i). `state` is None.
        """
        mean_discount = float(arrived.weights.sum() / np.sum(arrived.weights / arrived.staleness_factors))
        return Direction(arrived.mean * mean_discount, arrived.weights * mean_discount), None
