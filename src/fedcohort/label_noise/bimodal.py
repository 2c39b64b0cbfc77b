"""Some clients' labels are wrong much more often than the others': two rates.

    rate_i = rate    for exactly round(share K) of the K clients, drawn at random
             other   for all others

By default 40 % of the clients have 90 % of wrong labels and the rest none: who trains matters then. With ten classes a
rate of 0.9 leaves labels that say nothing of the sample, as the right one is no likelier than any other; above
(C - 1) / C the right label is the least likely one.

Departures from the paper: there is none; it is the plainest noise that a selector can find.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import CLASSES, Requirement
from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Bimodal(LabelNoise):
    """Two rates of wrong labels.

    Attributes:
        share: of the clients that have the first rate.
        rate: of wrong labels of these clients.
        other: rate of wrong labels of all others.
    """

    share: float
    rate: float
    other: float

    requirements: ClassVar[frozenset[Requirement]] = frozenset({CLASSES})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")
        ranges.number("rate", self.rate, "[0, 1]")
        ranges.number("other", self.other, "[0, 1]")

    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw who has which rate, [n_clients]."""
        order = draws.once().generator("label_noise").permutation(draws.n_clients)
        rates = np.full(draws.n_clients, float(self.other))
        rates[order[: round(self.share * draws.n_clients)]] = self.rate
        return rates
