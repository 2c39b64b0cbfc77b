"""Draws of Dirichlet and gamma variables, for any positive concentration."""

import numpy as np
from jaxtyping import Float64

from fedcohort.types import Values


def draw_dirichlet(alpha: float, n_variables: int, rng: np.random.Generator) -> Values:
    """Draw shares from the symmetric Dirichlet distribution with concentration `alpha` > 0, [n_variables].

    The draw is made in logarithms, by Gamma(alpha) = Gamma(alpha + 1) U^(1/alpha): for small alpha every Gamma(alpha)
    underflows to 0.
    """
    log_uniform_draws = np.log(1 - rng.random(n_variables))
    with np.errstate(over="ignore"):
        log_gamma = np.log(rng.standard_gamma(alpha + 1, n_variables)) + log_uniform_draws / alpha
    max_log_gamma = log_gamma.max()
    if np.isinf(max_log_gamma):  # the logarithms overflow for a tiny alpha; in the limit one share is 1
        return np.asarray((np.arange(n_variables) == log_uniform_draws.argmax()).astype(np.float64))
    gamma_draws = np.exp(log_gamma - max_log_gamma)
    return np.asarray(gamma_draws / gamma_draws.sum())


def draw_log_gamma(
    alpha: float, array_shape: tuple[int, int], rng: np.random.Generator
) -> Float64[np.ndarray, "clients classes"]:
    """Draw logarithms of Gamma(alpha) variables for any alpha > 0, of this `array_shape`, each a finite number."""
    with np.errstate(over="ignore"):
        log_gammas = np.log(rng.standard_gamma(alpha + 1, array_shape)) + np.log(1 - rng.random(array_shape)) / alpha
    return np.asarray(np.maximum(log_gammas, np.finfo(np.float64).min))
