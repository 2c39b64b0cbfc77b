"""Linear rewards with noise of unknown size: Bayesian regression with a normal-inverse-gamma prior.

    prior:  theta | s^2 ~ N(0, s^2 / lam I),  1 / s^2 ~ Gamma(1/2, 1/2)
    posterior:  theta | s^2 ~ N(theta_hat, s^2 V^-1), theta_hat = V^-1 b (`ridge.py`)
    noise after n rewards:  sigma^2 = 1 / E[1 / s^2] = (1 + sum r^2 - b'theta_hat) / (1 + n)

sum r^2 - b'theta_hat = |r - X theta_hat|^2 + lam |theta_hat|^2 is the part that the regression leaves unexplained. The
prior counts as one reward with a residual of 1, the size of a reward divided by the mean reward: rewards must be scaled
so.

A draw has the standard deviation of the rewards around their expectation. The confidence set of
`ridge.exploration_width` holds for any noise up to size 1 at all times, and is several times wider.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit import ridge
from fedcohort.bandit.ridge import Ridge


@dataclass(frozen=True)
class NoisyRidge:
    """Sums of a ridge regression of rewards on contexts, and the sums from which the noise of rewards is estimated.

    Attributes:
        ridge: sums V and b of the regression.
        squared_rewards: sum of the squared rewards.
        n_rewards: number of rewards observed.
    """

    ridge: Ridge
    squared_rewards: float = 0.0
    n_rewards: int = 0


def add_rewards(regression: NoisyRidge, X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"]) -> NoisyRidge:
    """Return the regression with the rewards r [n] of the contexts X [n, d] added; invalid rows are left out.

    A row is invalid if its context or reward holds NaN or a value of 1e12 or more in size.
    """
    is_valid_row = ridge.find_valid_rows(X, r)
    X, r = X[is_valid_row], r[is_valid_row]
    squared_rewards, n_rewards = regression.squared_rewards + float(r @ r), regression.n_rewards + len(r)
    return NoisyRidge(ridge.add_rewards(regression.ridge, X, r), squared_rewards, n_rewards)


def estimate_noise_deviation(regression: NoisyRidge) -> float:
    """Return the estimated standard deviation of the rewards about `regression`'s predictions; 1 without a reward."""
    residual_sum_of_squares = regression.squared_rewards - float(
        regression.ridge.b @ ridge.posterior_mean(regression.ridge)
    )
    return math.sqrt(
        (1.0 + max(residual_sum_of_squares, 0.0)) / (1 + regression.n_rewards)
    )  # rounding may make it negative
