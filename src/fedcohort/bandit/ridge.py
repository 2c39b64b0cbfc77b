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

ContextMatrix = Float64[np.ndarray, "_n _d"]
FeatureMatrix = Float64[np.ndarray, "d d"]
FeatureVector = Float64[np.ndarray, "d"]

# Larger features and rewards are invalid: their squares are far above lam, and sums of squares overflow.
MAX_VALID_VALUE = 1e12


@dataclass(frozen=True)
class Ridge:
    """Sums V and b of a ridge regression of rewards on contexts.

    Attributes:
        V: ridge penalty times I plus the sum of x x' over the rewarded contexts x, [d, d].
        b: sum of reward times context, [d].
    """

    V: FeatureMatrix
    b: FeatureVector


def prior_belief(n_features: int, lam: float) -> Ridge:
    """Return the regression before the first reward: `n_features` coefficients of 0 with covariance I / `lam`."""
    return Ridge(lam * np.eye(n_features), np.zeros(n_features))


def find_valid_rows(X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"] | None = None) -> Bool[np.ndarray, "n"]:
    """Return whether each row of X [n, d], and its reward in r [n] if given, is below 1e12 in size, bool [n]."""
    is_valid_row = (np.abs(X) < MAX_VALID_VALUE).all(axis=1)
    return np.asarray(is_valid_row if r is None else is_valid_row & (np.abs(r) < MAX_VALID_VALUE))


def add_rewards(regression: Ridge, X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"]) -> Ridge:
    """Return `regression` with the rewards r [n] of the contexts X [n, d] added; invalid rows are left out."""
    is_valid_row = find_valid_rows(X, r)
    X, r = X[is_valid_row], r[is_valid_row]
    return Ridge(regression.V + X.T @ X, regression.b + X.T @ r)


def cholesky_factor(regression: Ridge) -> FeatureMatrix:
    """Return the lower Cholesky factor C of the matrix V = C C' of `regression`, [d, d].

    With collinear features about 1e8 times larger than the ridge penalty, V is singular by rounding; its diagonal is
    then raised by 1e-10 of itself.
    """
    try:
        return np.linalg.cholesky(regression.V)
    except np.linalg.LinAlgError:
        return np.linalg.cholesky(regression.V + 1e-10 * np.diag(np.diag(regression.V)))


def posterior_mean(regression: Ridge) -> FeatureVector:
    """Return the posterior mean V^-1 b of the reward coefficients of `regression`, [d]."""
    C = cholesky_factor(regression)
    return np.linalg.solve(C.T, np.linalg.solve(C, regression.b))


def posterior_deviation(regression: Ridge) -> FeatureVector:
    """Return the posterior standard deviation of each reward coefficient of `regression`, sqrt(diag V^-1), [d].

    The noise of rewards has variance 1.
    """
    cholesky_inverse = np.linalg.solve(cholesky_factor(regression), np.eye(len(regression.b)))
    return np.asarray(np.sqrt((cholesky_inverse**2).sum(axis=0)))


def posterior_draw(regression: Ridge, gamma: float, normal_draws: FeatureVector) -> FeatureVector:
    """Return a draw of coefficients from N(V^-1 b, gamma^2 V^-1) of `regression`, [d].

    `normal_draws` [d] are the draws from N(0, I) that determine it.
    """
    return posterior_mean(regression) + gamma * np.linalg.solve(cholesky_factor(regression).T, normal_draws)


def exploration_width(round: int, n_arms: int, n_features: int, lam: float, delta: float) -> float:
    """Return the exploration width of FLASH (Algorithm 1, line 8), with the natural logarithm.

    Args:
        round: number of the round, from 0.
        n_arms: number of arms, i.e. clients.
        n_features: number of features of a context.
        lam: ridge penalty of the regression.
        delta: probability that the confidence set misses the true coefficients.
    """
    return math.sqrt(lam) + math.sqrt(n_features * math.log((1 + round * n_arms) / delta))
