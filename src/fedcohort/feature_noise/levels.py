"""Levels of the clients' feature noise: two distributions that all kinds of feature noise share.

uniform:   level_k ~ U[0, sigma)
bimodal:   level_k = sigma for exactly round(share K) of the K clients, drawn at random, and 0 for all others
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.rng import Draws


@dataclass(frozen=True)
class DrawnNoiseLevels:
    """The options of feature noise whose level is drawn for each client.

    Attributes:
        sigma: largest level of a client's noise.
        law: distribution of the levels over clients: "uniform" in [0, sigma), or "bimodal", sigma for some clients and
            0 for the others.
        share: fraction of the clients with noise under law=bimodal.
    """

    sigma: float
    law: str
    share: float

    def __post_init__(self) -> None:
        ranges.number("sigma", self.sigma, "[1e-12, 1000]")
        ranges.choice("law", self.law, "uniform", "bimodal")
        ranges.number("share", self.share, "[0, 1]")

    def levels(self, draws: Draws) -> Float64[np.ndarray, "clients"]:
        """Draw the level of each client's feature noise, [n_clients], once per run.

        Args:
            draws: number of clients, and generators of random numbers.
        """
        if self.law == "uniform":
            return self.sigma * draws.draws_of_run().uniform("feature_noise")
        client_order = draws.draws_of_run().generator("feature_noise").permutation(draws.n_clients)
        noise_levels = np.zeros(draws.n_clients)
        noise_levels[client_order[: round(self.share * draws.n_clients)]] = self.sigma
        return noise_levels
