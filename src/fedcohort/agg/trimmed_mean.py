"""Trimmed mean: the mean of each coordinate without its extreme values (Yin et al. 2018).

Yin, Chen, Ramchandran, Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018,
arXiv 1803.01498, Option II.

    direction_j:  mean of D_ij over the clients that remain in coordinate j
    remaining:  all but the k smallest and the k largest of the n values, k = floor(beta n)

Up to k false updates leave each coordinate among the honest values. beta = 0 is the plain mean. Clients have no
weights; the logged weight of a client is its share of the remaining values over all coordinates. The paper was not
read; the default beta is that of Flower, and other code sets k to the number of false updates.

Departures from the paper:
- The paper trims one gradient per client. Here clients train locally, and their updates are combined.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from fedcohort import ranges
from fedcohort.agg.unweighted import Unweighted
from fedcohort.maths.trimmed import trimmed_mean
from fedcohort.types import Values


@dataclass(frozen=True)
class TrimmedMean(Unweighted):
    """The trimmed mean, an aggregator that takes the mean of each coordinate without its extreme values.

    Attributes:
        beta: share of the values that is left out at each end of a coordinate.
    """

    beta: float

    def __post_init__(self) -> None:
        ranges.number("beta", self.beta, "[0, 0.5)")

    def notices(self, agg_name: str) -> Sequence[str]:
        """Return a start-up notice if no value is left out; `agg_name` is the value of the option `agg`."""
        return (f"agg={agg_name} is the plain mean with agg.beta=0: choose agg.beta above 0",) if self.beta == 0 else ()

    def combine(self, updates: Float[Tensor, "n p"]) -> tuple[Float[Tensor, "p"], Values]:
        return trimmed_mean(updates, min(int(self.beta * len(updates) + 1e-9), (len(updates) - 1) // 2))
