"""FedAvg: the weighted mean of locally trained models (McMahan et al. 2017).

McMahan, Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient Learning of Deep Networks from Decentralized
Data", AISTATS 2017, arXiv 1602.05629.

    D_i:  y_i - w_t
    p_i:  u_i / sum_j u_j over the clients that arrived
    direction:  sum_i p_i D_i

u_i is the number of samples that client i draws its mini-batches from: its whole training set, or what a sample
selection chooses from it. With client.steps a client may see fewer of them. agg=fedavgm is FedAvg with server=momentum,
agg=fedprox is FedAvg with regulariser=prox and partial work.

Departures from the paper: none. FLASH (Alg. 1, line 18) and FedDiverse (Sec. III) print weights N_i / N that sum to
less than 1 under partial participation, and would shrink the model. Here the sum is over the arrivals.
"""

from dataclasses import dataclass

from fedcohort.agg.base import Arrived, Direction, StatelessSampleWeighted


@dataclass(frozen=True)
class FedAvg(StatelessSampleWeighted):
    """FedAvg, an aggregator that takes the weighted mean of the clients' models."""

    def direction(self, state: None, arrived: Arrived) -> tuple[Direction, None]:
        return Direction(arrived.mean), None
