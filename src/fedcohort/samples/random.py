"""Clients train on a random part of their samples in each round: the control for methods that choose samples.

    u_i:  max(1, ceil(fraction n_i)), without replacement

Departures from the paper: none (no paper).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.samples.base import SampleRequest, Samples
from fedcohort.types import Ids, Population


@dataclass(frozen=True)
class Random(Samples[None]):
    """A sample selection that draws a random share of each client's samples in each round.

    Attributes:
        fraction: share of each client's samples, in (0, 1].
    """

    fraction: float

    is_foreseeable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("fraction", self.fraction, "(0, 1]")

    def init(self, population: Population) -> None:
        """Return None, as random samples need no state; `population` is not read."""

    def choose(self, state: None, request: SampleRequest) -> Ids:
        """Return the sorted positions, [m], of a random share of the samples of `request`, without replacement.

        `state` is None.
        """
        # .07 * 100 is 7.000000000000001 in floating point, and its ceiling 8
        n_drawn = max(1, math.ceil(self.fraction * request.n - 1e-9))
        return np.sort(request.rng("samples").choice(request.n, size=n_drawn, replace=False))
