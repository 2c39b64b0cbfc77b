"""The contract of signal noise: clients clip the numbers that they report and add noise, for differential privacy.

    report = clip(x, low, high) + (high - low) * multiplier * Z

The server is not trusted: privacy is local. Two data sets of a client are neighbours if they differ in any
samples. A clipped number then changes by at most high - low. Each number of a report counts as one answer. All
answers of a client in a run compose, also adaptively. The budget is per run.

The reports that get noise are answers to queries of selector and aggregator, and signals that are sent with the update,
if a component reads them. These stay as they are: model updates and what the server computes from them, numbers that
are sent once at registration (`n_train`), observed times, and the metrics of the bench. The epsilon says nothing about
these. Attackers falsify the number before it is clipped.

Departures from the theory: draws are float64, whose gaps an attack could exploit (Mironov, CCS 2012). Which clients are
selected follows from their reports and costs no privacy.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import Component

ReportedNumbers = Float64[np.ndarray, "_n *_d"]


class SignalNoise(Component, Protocol):
    """The noise that clients add to reported numbers; none by default.

    Attributes:
        perturbs: whether reported numbers are clipped and get noise.
    """

    perturbs: ClassVar[bool] = False

    def perturb(self, values: ReportedNumbers, rng: np.random.Generator) -> ReportedNumbers:
        """Return the numbers that a client reports in place of `values`, with the same shape.

        Args:
            values: the numbers of one answer of one client, [1] or [1, d]; NaN stays NaN.
            rng: the generator of (seed, "signal_noise/<signal>", round, client).
        """
        return values

    def epsilon(self, n_numbers: int) -> float:
        """Return the epsilon of differential privacy of a client that has reported `n_numbers` numbers."""
        return 0.0


@dataclass(frozen=True)
class ClippedNoise(SignalNoise):
    """Noise in proportion to the length of the interval to which numbers are clipped.

    Attributes:
        clip: lower and upper end of the interval.
        bound: whether the server also clips the noisy numbers to the interval, which costs no privacy.
        delta: probability delta of (epsilon, delta)-differential privacy, in (0, 1).
    """

    clip: Sequence[float]
    bound: bool
    delta: float

    perturbs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.numbers("clip", self.clip, "(-inf, inf)")
        if len(self.clip) != 2 or not self.clip[0] < self.clip[1]:
            raise ranges.range_error("clip", "a list of two numbers, the smaller one first, as [0,5]", self.clip)
        ranges.flag("bound", self.bound)
        ranges.number("delta", self.delta, "(0, 1)")

    @abstractmethod
    def draw_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> ReportedNumbers:
        """Return random noise of shape `shape` from `rng`, for numbers that are clipped to an interval of length 1."""

    def perturb(self, values: ReportedNumbers, rng: np.random.Generator) -> ReportedNumbers:
        lower_bound, upper_bound = self.clip
        noisy_values: ReportedNumbers = np.clip(values, lower_bound, upper_bound) + (
            upper_bound - lower_bound
        ) * self.draw_noise(values.shape, rng)
        return np.clip(noisy_values, lower_bound, upper_bound) if self.bound else noisy_values
