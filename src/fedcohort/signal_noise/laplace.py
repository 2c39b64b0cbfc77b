"""Laplace mechanism on reported numbers (Dwork, McSherry, Nissim and Smith, TCC 2006, Theorem 1).

    Z ~ Laplace(0, 1),   multiplier scale
    k numbers:  accountant=sum: eps = k / scale, with delta = 0
                accountant=pld: the smallest eps at delta, from the distribution of the privacy loss

The library dp-accounting composes the distributions of the privacy loss (Koskela, Jalko and Honkela, AISTATS 2020,
arXiv 1906.03049). Its eps grows with sqrt(k) instead of k, and takes up to a second per round.

Departures from the paper: none.
"""

import importlib.util
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.signal_noise.base import ClippedNoise, ReportedNumbers


@dataclass(frozen=True)
class Laplace(ClippedNoise):
    """Noise of a Laplace distribution on the numbers that clients report.

    Attributes:
        scale: scale of the noise relative to the length of the interval; its standard deviation is sqrt(2) times this.
        accountant: composition of several numbers: "sum" adds their epsilons, "pld" composes their privacy loss
            distributions, which gives a smaller epsilon and needs the package dp-accounting.
    """

    scale: float
    accountant: str

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.number("scale", self.scale, "[1e-3, 1e6]")
        ranges.choice("accountant", self.accountant, "sum", "pld")
        if self.accountant == "pld" and importlib.util.find_spec("dp_accounting") is None:
            raise OptionError(
                "accountant=pld needs the package dp-accounting, which is not installed: type pip install "
                '--constraint constraints.txt --editable ".[privacy]", or choose signal_noise.accountant=sum'
            )

    def draw_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> ReportedNumbers:
        return rng.laplace(scale=self.scale, size=shape)

    def epsilon(self, n_numbers: int) -> float:
        if self.accountant == "sum" or not n_numbers:
            return n_numbers / self.scale
        from dp_accounting import LaplaceDpEvent
        from dp_accounting.pld import PLDAccountant

        accountant = PLDAccountant()
        accountant.compose(LaplaceDpEvent(self.scale), n_numbers)
        return float(accountant.get_epsilon(self.delta))
