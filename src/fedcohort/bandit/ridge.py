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

FeatureMatrix = Float64[np.ndarray, "d d"]
FeatureVector = Float64[np.ndarray, "d"]

# Larger features and rewards are invalid: their squares are far above lam, and sums of squares overflow.
MAX_VALID_VALUE = 1e12


@dataclass(frozen=True)
class Ridge:
    """The sums V and b of a ridge regression of rewards on contexts.

    Attributes:
        V: lam I plus the sum of x x' over the rewarded contexts x, [d, d].
        b: sum of reward times context, [d].
    """

    V: FeatureMatrix
    b: FeatureVector


def prior_belief(n_features: int, lam: float) -> Ridge:
    """Return the belief before the first reward: theta = 0 with covariance I / lam."""
    return Ridge(lam * np.eye(n_features), np.zeros(n_features))


def find_valid_rows(X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"] | None = None) -> Bool[np.ndarray, "n"]:
    """Return whether each row is valid, bool [n]: all values of X, and its reward in r, are below 1e12 in size."""
    is_valid = (np.abs(X) < MAX_VALID_VALUE).all(axis=1)
    return np.asarray(is_valid if r is None else is_valid & (np.abs(r) < MAX_VALID_VALUE))


def add_rewards(regression: Ridge, X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"]) -> Ridge:
    """Return the sums after the rewards r of the contexts X; rows with invalid values are left out."""
    is_valid = find_valid_rows(X, r)
    X, r = X[is_valid], r[is_valid]
    return Ridge(regression.V + X.T @ X, regression.b + X.T @ r)


def cholesky_factor(regression: Ridge) -> FeatureMatrix:
    """Return the lower Cholesky factor C of the regression's matrix V = C C'.

    With collinear features about 1e8 times larger than lam, V is singular by rounding; its diagonal is then raised by
    1e-10.
    """
    try:
        return np.linalg.cholesky(regression.V)
    except np.linalg.LinAlgError:
        return np.linalg.cholesky(regression.V + 1e-10 * np.diag(np.diag(regression.V)))


def posterior_mean(regression: Ridge) -> FeatureVector:
    """Return the posterior mean of the reward coefficients, theta_hat = V^-1 b, [d]."""
    C = cholesky_factor(regression)
    return np.linalg.solve(C.T, np.linalg.solve(C, regression.b))


def posterior_deviation(regression: Ridge) -> FeatureVector:
    """Return the posterior standard deviation of each coefficient, sqrt(diag V^-1), for noise of variance 1, [d]."""
    factor_inverse = np.linalg.solve(cholesky_factor(regression), np.eye(len(regression.b)))
    deviations: FeatureVector = np.sqrt((factor_inverse**2).sum(axis=0))
    return deviations


def posterior_draw(regression: Ridge, gamma: float, normal_draws: FeatureVector) -> FeatureVector:
    """Return the draw from N(theta_hat, gamma^2 V^-1) that corresponds to the vector `normal_draws` from N(0, I)."""
    return posterior_mean(regression) + gamma * np.linalg.solve(cholesky_factor(regression).T, normal_draws)


def exploration_width(round: int, n_arms: int, n_features: int, lam: float, delta: float) -> float:
    """Return the exploration width gamma_t of FLASH (Alg. 1, line 8), with the natural logarithm.

    Args:
        round: number of the round, from 0.
        n_arms: number of arms.
        n_features: number of features.
        lam: ridge of the regression.
        delta: probability that the confidence set misses the true coefficients.
    """
    return math.sqrt(lam) + math.sqrt(n_features * math.log((1 + round * n_arms) / delta))
