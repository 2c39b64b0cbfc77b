"""Clients train on all of their samples.

    u_i:  n_i

Departures from the paper: none (FedAvg).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.samples.base import SampleRequest, Samples
from fedcohort.types import Ids, Population


@dataclass(frozen=True)
class All(Samples[None]):
    """A sample selection that takes all samples; it has no options."""

    uses_all_samples: ClassVar[bool] = True

    def init(self, population: Population) -> None:
        """Return None, as training on all samples needs no state; `population` is not read."""

    def choose(self, state: None, request: SampleRequest) -> Ids:
        """Return the positions of all samples of the client of `request`, [0, n); `state` is None."""
        return np.arange(request.n)
