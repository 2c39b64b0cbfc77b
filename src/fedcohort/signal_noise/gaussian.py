"""Gaussian mechanism on reported numbers (Dwork and Roth 2014, App. A; Balle and Wang, ICML 2018, arXiv 1805.06530).

    Z ~ N(0, 1),   multiplier sigma
    k numbers:  mu = sqrt(k) / sigma,   delta(eps) = Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu)

The curve delta(eps) is exact (Balle and Wang, Theorem 8): k answers with noise sigma compose, also adaptively, to one
answer with noise sigma / sqrt(k) (Dong, Roth and Su 2022, arXiv 1905.02383, Corollary 3.3). No library is needed, and
none is tighter. Zero-concentrated privacy gives an upper bound: eps = rho + 2 sqrt(rho ln(1/delta)) with
rho = k/(2 sigma^2).

Departures from the paper: none.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.signal_noise.base import ClippedNoise, ReportedNumbers


@dataclass(frozen=True)
class Gaussian(ClippedNoise):
    """Noise of a normal distribution on the numbers that clients report.

    Attributes:
        sigma: standard deviation of the noise relative to the length of the interval.
    """

    sigma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("sigma", self.sigma, "[1e-3, 1e6]")

    def draw_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> ReportedNumbers:
        return self.sigma * rng.standard_normal(shape)

    def epsilon(self, n_numbers: int) -> float:
        from scipy.optimize import brentq
        from scipy.special import log_ndtr

        mu = math.sqrt(n_numbers) / self.sigma

        def excess_delta(epsilon: float) -> float:
            log_second_term = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
            return float(np.exp(log_ndtr(mu / 2 - epsilon / mu)) - np.exp(log_second_term) - self.delta)

        if not n_numbers or excess_delta(0.0) <= 0:
            return 0.0
        epsilon_upper_bound = mu**2 / 2 + mu * math.sqrt(-2 * math.log(self.delta))  # of zero-concentrated privacy
        return float(brentq(excess_delta, 0.0, epsilon_upper_bound, xtol=1e-12))
