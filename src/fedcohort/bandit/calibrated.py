"""Linear rewards with noise of unknown size: Bayesian linear regression with a normal-inverse-gamma prior.

    theta | s^2 ~ N(0, s^2 / lam I),   1 / s^2 ~ Gamma(1/2, 1/2)
    after n rewards:  theta | s^2 ~ N(theta_hat, s^2 V^-1),   theta_hat = V^-1 b   (`ridge.py`)
                      sigma^2 = 1 / E[1 / s^2] = (1 + sum r^2 - b'theta_hat) / (1 + n)

sum r^2 - b'theta_hat = |r - X theta_hat|^2 + lam |theta_hat|^2 is what the regression leaves unexplained. The prior
counts as one reward with a residual of 1, which is the size of a reward that is divided by the mean of their sizes:
rewards have to come divided so.

A draw has the deviation that rewards themselves have about what is expected of them, where the confidence set of
`ridge.exploration` holds for any noise up to size 1 at all times, and is several times wider.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit import ridge
from fedcohort.bandit.ridge import Ridge


@dataclass(frozen=True)
class Noisy:
    """A ridge regression that knows its residuals.

    Attributes:
        ridge: V and b.
        squares: sum of r^2.
        count: n, rewards learnt.
    """

    ridge: Ridge
    squares: float = 0.0
    count: int = 0


def learn(past: Noisy, X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"]) -> Noisy:
    """A row of X and a reward of r for each pull; rows that are no measurement are left out."""
    good = ridge.usable(X, r)
    X, r = X[good], r[good]
    return Noisy(ridge.learn(past.ridge, X, r), past.squares + float(r @ r), past.count + len(r))


def sigma(past: Noisy) -> float:
    """Return the estimate of the noise's standard deviation; 1 before the first reward."""
    unexplained = past.squares - float(past.ridge.b @ ridge.estimate(past.ridge))
    return math.sqrt((1.0 + max(unexplained, 0.0)) / (1 + past.count))  # rounding may leave less than nothing
