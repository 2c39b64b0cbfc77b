"""NeuralUCB: upper confidence bounds of a small network's predictions (Zhou et al. 2020).

Zhou, Li, Gu, "Neural Contextual Bandits with UCB-based Exploration" (2020, recalled), with a cohort a round.

    f(x) = sqrt(h) W_2 relu(W_1 x),   g(x) = its gradient in theta,   score = f(x) + nu sqrt(g' Z^-1 g / h)
    Z <- Z + sum over the cohort of g g' / h, with the theta that chose it;   Z_0 = lam I
    theta <- Adam from theta_0 on 1/2 sum (f - r)^2 + h lam / 2 |theta - theta_0|^2 over all rewards so far

Each fit starts at theta_0, as in the paper, and its learning rate falls linearly to 0. A fit that starts where the last
one ended, at a constant rate, amplifies rounding: 1e-7 in the losses becomes another cohort within 10 rounds.
Half of the hidden units are copies of the others with W_2 of the opposite sign, so that f = 0 before the first reward;
entries are N(0, 4/h). Z is its diagonal where theta is long; x is standardised by the mean and deviation of every
context scored so far.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import usable
from fedcohort.types import Values

FULL = 512  # parameters up to which Z is a full matrix
KEPT = 5000  # newest rewards that are fitted
BETAS, EPSILON = (0.9, 0.999), 1e-8  # Adam's
ROUNDING = 1e-6  # of a feature's mean: a smaller deviation is rounding, as losses come in single precision

Rows = Float64[np.ndarray, "_n _d"]


@dataclass(frozen=True)
class Net:
    """What the network has learnt.

    Attributes:
        theta, origin: W_1 row by row, then W_2, now and at the start, [h (d + 1)].
        Z: [q, q], or its diagonal [q].
        X, r: rewarded contexts, as they came, and their rewards.
        count, mean, spread: of the contexts scored so far, spread being the sum of their squared distances from the
            mean.
    """

    theta: Values
    origin: Values
    Z: Float64[np.ndarray, "_q *_q2"]
    X: Rows
    r: Values
    count: int
    mean: Values
    spread: Values

    def width(self) -> int:
        """h."""
        return len(self.theta) // (len(self.mean) + 1)


def fresh(d: int, pairs: int, lam: float, rng: np.random.Generator | None) -> Net:
    """Make the net before the first context; rng: None leaves all weights at zero, where nothing is learnt."""
    h = 2 * pairs
    half = np.zeros((pairs, d + 1)) if rng is None else rng.normal(0.0, math.sqrt(4 / h), (pairs, d + 1))
    theta = np.concatenate([np.tile(half[:, :d].ravel(), 2), half[:, d], -half[:, d]])
    Z = lam * (np.eye(len(theta)) if len(theta) <= FULL else np.ones(len(theta)))
    return Net(theta, theta, Z, np.empty((0, d)), np.empty(0), 0, np.zeros(d), np.zeros(d))


def layers(theta: Values, d: int) -> tuple[Rows, Values]:
    """Return the layers W_1 [h, d] and W_2 [h]."""
    h = len(theta) // (d + 1)
    return theta[: h * d].reshape(h, d), theta[h * d :]


def output(theta: Values, X: Rows) -> Values:
    """Return f of each row, [n]; half by half, so that copies of opposite sign cancel to the last bit."""
    W_1, W_2 = layers(theta, X.shape[1])
    half = len(W_2) // 2
    a, b = (np.maximum(X @ W_1[s].T, 0.0) @ W_2[s] for s in (slice(half), slice(half, None)))
    return np.asarray(math.sqrt(len(W_2)) * (a + b))


def gradients(theta: Values, X: Rows) -> Rows:
    """Return g of each row, [n, q]."""
    W_1, W_2 = layers(theta, X.shape[1])
    hidden = X @ W_1.T
    inner = ((hidden > 0) * W_2)[:, :, None] * X[:, None, :]
    return math.sqrt(len(W_2)) * np.concatenate([inner.reshape(len(X), W_1.size), np.maximum(hidden, 0.0)], axis=1)


def bonus(Z: Float64[np.ndarray, "_q *_q2"], G: Rows, h: int) -> Values:
    """Return sqrt(g' Z^-1 g / h) for each row of G, [n]; Z: [q, q], or its diagonal [q]."""
    if Z.ndim == 1:
        return np.asarray(np.sqrt((G**2 / Z).sum(axis=1) / h))
    root = np.linalg.solve(np.linalg.cholesky(Z), G.T)
    return np.asarray(np.sqrt((root**2).sum(axis=0) / h))


def met(past: Net, X: Rows) -> Net:
    """Take the contexts X, which were scored, into mean and deviation.

    The update is Chan, Golub and LeVeque's.
    """
    n = len(X)
    if not n:
        return past
    count, mean = past.count + n, X.mean(axis=0)
    apart = mean - past.mean
    spread = past.spread + ((X - mean) ** 2).sum(axis=0) + apart**2 * (past.count * n / count)
    return replace(past, count=count, mean=past.mean + apart * (n / count), spread=spread)


def standardise(past: Net, X: Rows) -> Rows:
    """Return X in deviations from the mean; a feature that varies by no more than rounding is 0."""
    sd = np.sqrt(past.spread / max(past.count, 1))
    floor = ROUNDING * np.maximum(np.abs(past.mean), 1e-300)
    return np.asarray(np.divide(X - past.mean, sd, out=np.zeros_like(X), where=sd > floor))


def judge(past: Net, X: Rows) -> tuple[Values, Values, Net]:
    """f and the bonus of each row, NaN where a row is no measurement, and what was learnt of the contexts' spread."""
    good = usable(X)
    past = met(past, X[good])
    mean, width = np.full(len(X), np.nan), np.full(len(X), np.nan)
    rows = standardise(past, X[good])
    mean[good] = output(past.theta, rows)
    width[good] = bonus(past.Z, gradients(past.theta, rows), past.width())
    return mean, width, past


def choose(past: Net, X: Rows) -> Net:
    """The cohort of contexts X trains."""
    G = gradients(past.theta, standardise(past, X[usable(X)]))
    added = G.T @ G if past.Z.ndim == 2 else (G**2).sum(axis=0)
    return replace(past, Z=past.Z + added / past.width())


def learn(past: Net, X: Rows, r: Values, lam: float, steps: int, lr: float) -> Net:
    """A row of X and a reward of r for each pull; rows that are no measurement are left out."""
    good = usable(X, r)
    X, r = np.concatenate([past.X, X[good]])[-KEPT:], np.concatenate([past.r, r[good]])[-KEPT:]
    if not good.any():
        return past
    theta = fit(past.origin, standardise(past, X), r, lam, steps, lr)
    return replace(past, theta=theta, X=X, r=r)


def fit(origin: Values, X: Rows, r: Values, lam: float, steps: int, lr: float) -> Values:
    """Return theta after `steps` full-batch steps of Adam from `origin`; the learning rate falls from lr to lr / steps.

    origin is theta_0, [h (d + 1)]; X [n, d] holds standardised contexts, r [n] their rewards; lam is the ridge.
    """
    penalty = lam * len(layers(origin, X.shape[1])[1])
    theta, first, second = origin, np.zeros_like(origin), np.zeros_like(origin)
    for step in range(1, steps + 1):
        g = slope(theta, X, r) + penalty * (theta - origin)
        first, second = BETAS[0] * first + (1 - BETAS[0]) * g, BETAS[1] * second + (1 - BETAS[1]) * g**2
        scale = np.sqrt(second / (1 - BETAS[1] ** step)) + EPSILON
        rate = lr * (steps - step + 1) / steps
        theta = theta - rate * first / (1 - BETAS[0] ** step) / scale
    return theta


def slope(theta: Values, X: Rows, r: Values) -> Values:
    """The gradient of 1/2 sum (f - r)^2: that of `gradients` summed with weights f - r, without the matrix [n, q]."""
    W_1, W_2 = layers(theta, X.shape[1])
    hidden = X @ W_1.T
    active = np.maximum(hidden, 0.0)
    error = math.sqrt(len(W_2)) * (math.sqrt(len(W_2)) * active @ W_2 - r)
    inner = (error[:, None] * ((hidden > 0) * W_2)).T @ X
    return np.concatenate([inner.ravel(), error @ active])
