"""Clients train on all of their samples.

    u_i = n_i

Departures from the paper: none (FedAvg).
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.samples.base import SampleRequest
from fedcohort.types import Ids, Population, RoundOutcome


@dataclass(frozen=True)
class All:
    def init(self, population: Population) -> None:
        """No state."""

    def choose(self, state: None, request: SampleRequest) -> Ids:
        """Every position."""
        return np.arange(request.n)

    def observe(self, state: None, outcome: RoundOutcome) -> None:
        """No state."""
