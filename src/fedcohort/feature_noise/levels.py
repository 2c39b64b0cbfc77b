"""Levels of the clients' feature noise: two distributions that all kinds of feature noise share.

uniform:   level_k ~ U[0, sigma)
bimodal:   level_k = sigma for exactly round(share K) of the K clients, drawn at random, and 0 for all others
"""

import numpy as np
from jaxtyping import Float64

from fedcohort import ranges
from fedcohort.rng import Draws


def check_level_options(sigma: float, law: str, share: float) -> None:
    """Check the options of `draw_levels`; raise `OptionError` for a value out of range."""
    ranges.number("sigma", sigma, "(0, 1000]")
    ranges.choice("law", law, "uniform", "bimodal")
    ranges.number("share", share, "[0, 1]")


def draw_levels(sigma: float, law: str, share: float, draws: Draws) -> Float64[np.ndarray, "clients"]:
    """Draw the level of each client's feature noise, [n_clients], once per run.

    Args:
        sigma: largest level.
        law: "uniform" or "bimodal".
        share: fraction of the clients with noise under "bimodal".
        draws: random numbers of the run.
    """
    if law == "uniform":
        return sigma * draws.once().uniform("feature_noise")
    order = draws.once().generator("feature_noise").permutation(draws.n_clients)
    levels = np.zeros(draws.n_clients)
    levels[order[: round(share * draws.n_clients)]] = sigma
    return levels
