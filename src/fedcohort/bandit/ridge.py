"""Ridge regression of linear rewards: the posterior that Thompson sampling and LinUCB share.

    sums:  V = lam I + sum x x',  b = sum r x
    posterior:  theta ~ N(theta_hat, gamma^2 V^-1), theta_hat = V^-1 b
    width:  gamma_t = sqrt(lam) + sqrt(d ln((1 + t n) / delta)) for n arms and d features (FLASH Sec. II-A, Alg. 2)

Everything is computed with the Cholesky factor V = C C': a draw is theta_hat + gamma C^-T z with z ~ N(0, I).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

Matrix = Float64[np.ndarray, "d d"]
Vector = Float64[np.ndarray, "d"]

# Larger features and rewards are invalid: their squares are far above lam, and sums of squares overflow.
MAX_VALUE = 1e12


@dataclass(frozen=True)
class Ridge:
    """The sums V and b of a ridge regression of rewards on contexts.

    Attributes:
        V: lam I plus the sum of x x', [d, d].
        b: the sum of r x, [d].
    """

    V: Matrix
    b: Vector


def prior_belief(d: int, lam: float) -> Ridge:
    """Return the belief before the first reward: theta = 0 with covariance I / lam."""
    return Ridge(lam * np.eye(d), np.zeros(d))


def find_valid_rows(X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"] | None = None) -> Bool[np.ndarray, "n"]:
    """Return which rows are valid, bool [n]: every value is below 1e12 in size."""
    is_valid = (np.abs(X) < MAX_VALUE).all(axis=1)
    return np.asarray(is_valid if r is None else is_valid & (np.abs(r) < MAX_VALUE))


def add_rewards(past: Ridge, X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"]) -> Ridge:
    """Return the sums after a row of X and a reward of r for each pull; invalid rows are left out."""
    valid = find_valid_rows(X, r)
    X, r = X[valid], r[valid]
    return Ridge(past.V + X.T @ X, past.b + X.T @ r)


def cholesky_factor(past: Ridge) -> Matrix:
    """Return the lower Cholesky factor C of the regression's matrix V = C C'.

    With collinear features about 1e8 times larger than lam, V is singular by rounding; its diagonal is then raised by
    1e-10.
    """
    try:
        return np.linalg.cholesky(past.V)
    except np.linalg.LinAlgError:
        return np.linalg.cholesky(past.V + 1e-10 * np.diag(np.diag(past.V)))


def posterior_mean(past: Ridge) -> Vector:
    """Return the posterior mean of the reward coefficients, theta_hat = V^-1 b, [d]."""
    C = cholesky_factor(past)
    return np.linalg.solve(C.T, np.linalg.solve(C, past.b))


def posterior_deviation(past: Ridge) -> Vector:
    """Return the posterior standard deviation of each coefficient, sqrt(diag V^-1), for noise of variance 1, [d]."""
    inverse = np.linalg.solve(cholesky_factor(past), np.eye(len(past.b)))
    sd: Vector = np.sqrt((inverse**2).sum(axis=0))
    return sd


def posterior_draw(past: Ridge, gamma: float, z: Vector) -> Vector:
    """Return the draw from N(theta_hat, gamma^2 V^-1) that belongs to the standard normal vector z."""
    return posterior_mean(past) + gamma * np.linalg.solve(cholesky_factor(past).T, z)


def exploration_width(t: int, n: int, d: int, lam: float, delta: float) -> float:
    """Return gamma_t of FLASH Alg. 1, line 8, with the natural logarithm.

    Args:
        t: number of the round, from 0.
        n: number of arms.
        d: number of features.
        lam: ridge.
        delta: confidence.
    """
    return math.sqrt(lam) + math.sqrt(d * math.log((1 + t * n) / delta))
