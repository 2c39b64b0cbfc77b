"""Two rates of wrong labels: some clients have a high rate, all others a low one.

    rate_i = rate    for exactly round(share K) of the K clients, drawn at random
             other   for all other clients

By default 40 % of the clients have 90 % of wrong labels, the others none, so that selection matters much. With ten
classes a rate of 0.9 makes labels independent of the sample: every class is equally likely. Above (C - 1) / C the true
class is the least likely one.

Departures from the paper: there is no paper; it is the simplest noise that a selector can detect.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.component import ONE_CLASS_PER_SAMPLE, Requirement
from fedcohort.label_noise.base import LabelNoise
from fedcohort.rng import Draws


@dataclass(frozen=True)
class Bimodal(LabelNoise):
    """A label noise with two rates of wrong labels: some clients have a high rate, all others a low one.

    Attributes:
        share: fraction of the clients that have the rate `rate`.
        rate: probability that a label of these clients is wrong.
        other: probability that a label of any other client is wrong.
    """

    share: float
    rate: float
    other: float

    requirements: ClassVar[frozenset[Requirement]] = frozenset({ONE_CLASS_PER_SAMPLE})

    def __post_init__(self) -> None:
        ranges.number("share", self.share, "[0, 1]")
        ranges.number("rate", self.rate, "[0, 1]")
        ranges.number("other", self.other, "[0, 1]")

    def rates(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw each client's probability that a label is wrong, [n_clients], from `draws`, the run's random numbers."""
        client_order = draws.draws_of_run().generator("label_noise").permutation(draws.n_clients)
        noise_rates = np.full(draws.n_clients, float(self.other))
        noise_rates[client_order[: round(self.share * draws.n_clients)]] = self.rate
        return noise_rates
