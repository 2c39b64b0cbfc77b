"""Clients with much data train on their hardest samples alone: "SampleSelection" in FedBalancer (Shin et al. 2022).

    q = 80th percentile of the n_i,   K = floor(q)
    n_i >= q: train on the K samples of the largest loss_i,      n_i < q: on all

loss_i is the client's list: every sample's cross-entropy on the model of its first round, overwritten by what is seen
in the first local epoch of each round that it trains in.

Departures from the paper:
- FedSS (Cai, Lin, Zhang, Yu, "Dynamic Sample Selection for Federated Learning with Heterogeneous Data in Fog
  Computing", ICC 2020) lets the number of samples grow during training, and reads no loss. Its combination with the
  largest losses is FedBalancer's baseline, as here: nothing grows, and what is learned early is not trained on again.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from fedcohort import ranges
from fedcohort.component import Requirement
from fedcohort.samples.base import CLEAN_LABELS, SampleRequest, Samples
from fedcohort.types import Ids, Population


@dataclass(frozen=True)
class FedssLoss(Samples[float]):
    """The sample selection, with its options; its state is q.

    Attributes:
        percentile: of the numbers of samples, from which on a client has much.
    """

    percentile: float

    keeps_losses: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"n_train"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS})

    def __post_init__(self) -> None:
        ranges.number("percentile", self.percentile, "[0, 100]")

    def init(self, population: Population) -> float:
        """Return q, by linear interpolation between clients."""
        return float(np.percentile(population.signals["n_train"], self.percentile))

    def look(self, state: float, n: Ids) -> Bool[np.ndarray, "clients"]:
        """Only those who choose keep a list."""
        return n >= state

    def choose(self, state: float, request: SampleRequest) -> Ids:
        """Choose the K largest losses, the first of those that are equal; all where the client has less than q."""
        if request.n < state:
            return np.arange(request.n)
        return np.sort(np.argsort(-request.losses, kind="stable")[: max(1, int(state))])
