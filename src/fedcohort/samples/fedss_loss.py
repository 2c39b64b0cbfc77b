"""FedSS with losses: clients with many samples train on their hardest samples ("SampleSelection" in FedBalancer).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601.

    q:  80th percentile of the n_i
    K:  floor(q)
    n_i >= q:  train on the K samples with the largest loss_i
    n_i < q:  train on all samples

loss_i is the client's list: the cross-entropy of every sample on the model of the client's first round, updated by the
losses in the first local epoch of each round that it trains in.

Departures from the paper:
- FedSS itself increases the number of samples during training, and reads no loss: Cai, Lin, Zhang, Yu, "Dynamic Sample
  Selection for Federated Learning with Heterogeneous Data in Fog Computing", ICC 2020. Its combination with the largest
  losses is FedBalancer's baseline, as here: samples learnt early are not trained on again.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.samples.base import CLEAN_LABELS_REQUIREMENT, SampleRequest, Samples
from fedcohort.types import Ids, Population


@dataclass(frozen=True)
class FedssLoss(Samples[float]):
    """FedSS with losses, a sample selection: clients with many samples train on those with the largest losses.

    Its state is a number of samples: a client with so many or more trains on a part of them, others on all.

    Attributes:
        percentile: number p in [0, 100]; the state is the p-th percentile of the clients' numbers of samples.
    """

    percentile: float

    keeps_losses: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS_REQUIREMENT})

    def __post_init__(self) -> None:
        ranges.number("percentile", self.percentile, "[0, 100]")

    def init(self, population: Population) -> float:
        """Return the percentile of the clients' numbers of samples in `population`, by linear interpolation."""
        return float(np.percentile(population.signals["n_train"], self.percentile))

    def stores_losses(self, state: float, n_samples: Ids) -> Bool[np.ndarray, "clients"]:
        """Return whether each client trains on a part of its samples, and so keeps their losses, bool [clients].

        Args:
            state: number of samples from which on a client trains on a part of them.
            n_samples: training samples of each client, [clients].
        """
        return n_samples >= state

    def choose(self, state: float, request: SampleRequest) -> Ids:
        """Return the positions, [m], of the samples with the largest losses; all of a client with few samples.

        Args:
            state: number of samples from which on a client trains on a part of them.
            request: the losses of the client's samples.
        """
        if request.n < state:
            return np.arange(request.n)
        return np.sort(np.argsort(-request.losses, kind="stable")[: max(1, int(state))])
