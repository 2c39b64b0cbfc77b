"""Median: the coordinate-wise median of the clients' updates (Yin et al. 2018).

Yin, Chen, Ramchandran, Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018,
arXiv 1803.01498, Option I.

    direction_j:  median of D_ij over the n clients that arrived; the mean of the two middle values where n is even

Fewer than n / 2 false updates leave each coordinate among the honest values. Clients have no weights; the logged
weight of a client is its share of the middle values over all coordinates. The paper was not read; the definition is
that of NumPy's median.

Departures from the paper:
- The paper takes the median of one gradient per client. Here clients train locally, and their updates are combined.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from fedcohort.agg.unweighted import Unweighted
from fedcohort.maths.trimmed import trimmed_mean
from fedcohort.types import Values


@dataclass(frozen=True)
class Median(Unweighted):
    """The coordinate-wise median, an aggregator that takes the median of the updates in each coordinate."""

    def combine(self, updates: Float[Tensor, "n p"]) -> tuple[Float[Tensor, "p"], Values]:
        return trimmed_mean(updates, (len(updates) - 1) // 2)
