"""Linear rewards: the ridge posterior that Thompson sampling and LinUCB share.

    V = lam I + sum x x',   b = sum r x,   theta_hat = V^-1 b,   theta ~ N(theta_hat, gamma^2 V^-1)
    gamma_t = sqrt(lam) + sqrt(d ln((1 + t n) / delta))          (FLASH Sec. II-A and Alg. 2; n arms, d features)

Everything goes through the Cholesky factor V = C C': a draw is theta_hat + gamma C^-T z with z ~ N(0, I).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

Matrix = Float64[np.ndarray, "d d"]
Vector = Float64[np.ndarray, "d"]

# A feature or reward beyond this is no measurement: its square swamps lam, and squares of it soon overflow.
LIMIT = 1e12


@dataclass(frozen=True)
class Ridge:
    """The sums of a ridge regression.

    Attributes:
        V: lam I plus the sum of x x'.
        b: the sum of r x.
    """

    V: Matrix
    b: Vector


def prior(d: int, lam: float) -> Ridge:
    """What is believed before the first reward: theta = 0 with covariance I / lam."""
    return Ridge(lam * np.eye(d), np.zeros(d))


def usable(X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"] | None = None) -> Bool[np.ndarray, "n"]:
    """Return which rows are measurements, bool [n]: every value is below 1e12 in size."""
    rows = (np.abs(X) < LIMIT).all(axis=1)
    return np.asarray(rows if r is None else rows & (np.abs(r) < LIMIT))


def learn(past: Ridge, X: Float64[np.ndarray, "n d"], r: Float64[np.ndarray, "n"]) -> Ridge:
    """A row of X and a reward of r for each pull; rows that are no measurement are left out."""
    good = usable(X, r)
    X, r = X[good], r[good]
    return Ridge(past.V + X.T @ X, past.b + X.T @ r)


def factor(past: Ridge) -> Matrix:
    """The lower Cholesky factor C of V.

    Collinear features some 1e8 times larger than lam round V to a singular matrix; its diagonal then grows by 1e-10.
    """
    try:
        return np.linalg.cholesky(past.V)
    except np.linalg.LinAlgError:
        return np.linalg.cholesky(past.V + 1e-10 * np.diag(np.diag(past.V)))


def estimate(past: Ridge) -> Vector:
    """theta_hat = V^-1 b."""
    C = factor(past)
    return np.linalg.solve(C.T, np.linalg.solve(C, past.b))


def deviation(past: Ridge) -> Vector:
    """Posterior standard deviation of each coefficient, sqrt(diag V^-1), for noise of variance 1."""
    inverse = np.linalg.solve(factor(past), np.eye(len(past.b)))
    sd: Vector = np.sqrt((inverse**2).sum(axis=0))
    return sd


def sample(past: Ridge, gamma: float, z: Vector) -> Vector:
    """The draw from N(theta_hat, gamma^2 V^-1) that belongs to the standard normal vector z."""
    return estimate(past) + gamma * np.linalg.solve(factor(past).T, z)


def exploration(t: int, n: int, d: int, lam: float, delta: float) -> float:
    """gamma_t of FLASH Alg. 1, line 8; natural logarithm."""
    return math.sqrt(lam) + math.sqrt(d * math.log((1 + t * n) / delta))
