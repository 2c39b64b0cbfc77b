"""FedAvg: the weighted mean of locally trained models (McMahan et al. 2017).

    D_i = y_i - w_t,   p_i = u_i / sum_j u_j over those who arrived,   direction = sum_i p_i D_i

u_i counts the samples that client i draws its mini-batches from this round: all of T_i, or what a sample selection
leaves of it; with client.steps it may come to see fewer of them. `agg=fedavgm` is this with `server=momentum`,
`agg=fedprox` with `regulariser=prox` and partial work.

Departures from the paper: FLASH (Alg. 1 l. 18) and FedDiverse (Sec. III) print weights N_i / N that sum to less than 1
under partial participation and would shrink the model; the sum is over those who arrived.
"""

from dataclasses import dataclass

from fedcohort import ranges
from fedcohort.agg.base import Aggregator, Arrived, Direction, sample_weights
from fedcohort.types import Ids, Population, Values


@dataclass(frozen=True)
class FedAvg(Aggregator[None]):
    """FedAvg, with its option.

    Attributes:
        weighting: by samples "used" this round (u_i), by "samples" owned, or "uniform".
    """

    weighting: str

    def __post_init__(self) -> None:
        ranges.choice("weighting", self.weighting, "used", "samples", "uniform")

    def init(self, population: Population, n_params: int) -> None:
        """No state."""

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        return sample_weights(self.weighting, n_used, n_train)

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        return Direction(arrived.mean), None
