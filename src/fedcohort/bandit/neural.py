"""NeuralUCB: upper confidence bounds of a small network's predictions (Zhou et al. 2020).

Zhou, Li, Gu, "Neural Contextual Bandits with UCB-based Exploration", ICML 2020, arXiv 1911.04462; text not available,
implemented from memory of it.

    network:  f(x) = sqrt(h) W_2 relu(W_1 x), g(x) its gradient in theta
    score:  f(x) + nu sqrt(g' Z^-1 g / h)
    after a choice:  Z <- Z + sum over the cohort of g g' / h, with the theta that chose it;  Z_0 = lam I
    fit:  Adam from theta_0 on 1/2 sum (f - r)^2 + h lam / 2 |theta - theta_0|^2 over all rewards so far

Half of the hidden units are copies of the others with W_2 of the opposite sign, so that f = 0 before the first reward.
Entries are drawn from N(0, 4/h). Each fit starts at theta_0, as in the paper.

Departures from the paper:
- A cohort is chosen in each round, not a single arm.
- Z is its diagonal where theta has more than 512 numbers.
- x is standardised by the mean and the deviation of all contexts scored so far.
- The learning rate of a fit falls linearly to 0. A fit at a constant rate that starts where the last one ended
  amplifies rounding: 1e-7 in the losses becomes another cohort within 10 rounds.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import find_valid_rows
from fedcohort.types import Values

MAX_FULL_MATRIX = 512  # largest number of parameters for which Z is a full matrix
MAX_REWARDS = 5000  # newest rewards that are fitted
BETAS, ADAM_EPS = (0.9, 0.999), 1e-8  # Adam's
MIN_RELATIVE_SD = 1e-6  # deviations below this share of the mean are rounding of single-precision losses

Rows = Float64[np.ndarray, "_n _d"]


@dataclass(frozen=True)
class Network:
    """State of NeuralUCB: the network's weights, its confidence matrix, and the rewarded contexts.

    Attributes:
        theta: W_1 row by row, then W_2, [h (d + 1)].
        origin: theta_0.
        Z: [q, q], or its diagonal [q].
        X: rewarded contexts, not standardised.
        r: their rewards.
        count: number of contexts scored so far.
        mean: their mean.
        spread: sum of their squared distances from the mean.
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
        """Return h, the number of hidden units."""
        return len(self.theta) // (len(self.mean) + 1)


def initial_network(d: int, pairs: int, lam: float, rng: np.random.Generator | None) -> Network:
    """Return the network before the first context; rng=None leaves all weights at zero, where nothing is learnt."""
    h = 2 * pairs
    half = np.zeros((pairs, d + 1)) if rng is None else rng.normal(0.0, math.sqrt(4 / h), (pairs, d + 1))
    theta = np.concatenate([np.tile(half[:, :d].ravel(), 2), half[:, d], -half[:, d]])
    Z = lam * (np.eye(len(theta)) if len(theta) <= MAX_FULL_MATRIX else np.ones(len(theta)))
    return Network(theta, theta, Z, np.empty((0, d)), np.empty(0), 0, np.zeros(d), np.zeros(d))


def split_layers(theta: Values, d: int) -> tuple[Rows, Values]:
    """Return the weights W_1 [h, d] and W_2 [h] of the two layers from the flat vector theta; d: number of inputs."""
    h = len(theta) // (d + 1)
    return theta[: h * d].reshape(h, d), theta[h * d :]


def network_outputs(theta: Values, X: Rows) -> Values:
    """Return the network's output f(x) for each row x of X, [n].

    The halves of the hidden units are summed apart, so that copies of opposite sign cancel exactly.
    """
    W_1, W_2 = split_layers(theta, X.shape[1])
    half = len(W_2) // 2
    a, b = (np.maximum(X @ W_1[s].T, 0.0) @ W_2[s] for s in (slice(half), slice(half, None)))
    return np.asarray(math.sqrt(len(W_2)) * (a + b))


def output_gradients(theta: Values, X: Rows) -> Rows:
    """Return the gradient of the network's output in its q parameters for each row of X, [n, q]."""
    W_1, W_2 = split_layers(theta, X.shape[1])
    hidden_units = X @ W_1.T
    inner = ((hidden_units > 0) * W_2)[:, :, None] * X[:, None, :]
    return math.sqrt(len(W_2)) * np.concatenate(
        [inner.reshape(len(X), W_1.size), np.maximum(hidden_units, 0.0)], axis=1
    )


def exploration_bonus(Z: Float64[np.ndarray, "_q *_q2"], G: Rows, h: int) -> Values:
    """Return the exploration bonus sqrt(g' Z^-1 g / h) of each gradient g, [n].

    Args:
        Z: confidence matrix [q, q], or its diagonal [q].
        G: a gradient in each row, [n, q].
        h: number of hidden units.
    """
    if Z.ndim == 1:
        return np.asarray(np.sqrt((G**2 / Z).sum(axis=1) / h))
    solution = np.linalg.solve(np.linalg.cholesky(Z), G.T)
    return np.asarray(np.sqrt((solution**2).sum(axis=0) / h))


def update_moments(past: Network, X: Rows) -> Network:
    """Return the network whose mean and variance of contexts include those of X (Chan, Golub and LeVeque 1983)."""
    n = len(X)
    if not n:
        return past
    count, mean = past.count + n, X.mean(axis=0)
    mean_shift = mean - past.mean
    spread = past.spread + ((X - mean) ** 2).sum(axis=0) + mean_shift**2 * (past.count * n / count)
    return replace(past, count=count, mean=past.mean + mean_shift * (n / count), spread=spread)


def standardise(past: Network, X: Rows) -> Rows:
    """Return X as deviations from the mean over the standard deviation; a feature that varies by rounding only is 0."""
    sd = np.sqrt(past.spread / max(past.count, 1))
    min_sd = MIN_RELATIVE_SD * np.maximum(np.abs(past.mean), 1e-300)
    return np.asarray(np.divide(X - past.mean, sd, out=np.zeros_like(X), where=sd > min_sd))


def predict_with_bonus(past: Network, X: Rows) -> tuple[Values, Values, Network]:
    """Return the network's output and exploration bonus for each row of X, and the network with updated moments.

    Both numbers are NaN for a row with NaN or values above 1e12.
    """
    valid = find_valid_rows(X)
    past = update_moments(past, X[valid])
    mean, width = np.full(len(X), np.nan), np.full(len(X), np.nan)
    rows = standardise(past, X[valid])
    mean[valid] = network_outputs(past.theta, rows)
    width[valid] = exploration_bonus(past.Z, output_gradients(past.theta, rows), past.width())
    return mean, width, past


def add_selected_gradients(past: Network, X: Rows) -> Network:
    """Return the network after a selection: the gradients of the selected contexts X are added to its matrix Z."""
    G = output_gradients(past.theta, standardise(past, X[find_valid_rows(X)]))
    gradient_products = G.T @ G if past.Z.ndim == 2 else (G**2).sum(axis=0)
    return replace(past, Z=past.Z + gradient_products / past.width())


def add_rewards_and_fit(past: Network, X: Rows, r: Values, lam: float, steps: int, lr: float) -> Network:
    """Return the network fitted to all rewards, with a row of X and a reward of r for each pull.

    Invalid rows are left out.
    """
    valid = find_valid_rows(X, r)
    X, r = np.concatenate([past.X, X[valid]])[-MAX_REWARDS:], np.concatenate([past.r, r[valid]])[-MAX_REWARDS:]
    if not valid.any():
        return past
    theta = fit_weights(past.origin, standardise(past, X), r, lam, steps, lr)
    return replace(past, theta=theta, X=X, r=r)


def fit_weights(origin: Values, X: Rows, r: Values, lam: float, steps: int, lr: float) -> Values:
    """Return theta after `steps` full-batch steps of Adam from theta_0; the learning rate falls from lr to lr / steps.

    Args:
        origin: theta_0, [h (d + 1)].
        X: standardised contexts, [n, d].
        r: their rewards, [n].
        lam: ridge.
        steps: number of steps.
        lr: first learning rate.
    """
    penalty = lam * len(split_layers(origin, X.shape[1])[1])
    theta, first, second = origin, np.zeros_like(origin), np.zeros_like(origin)
    for step in range(1, steps + 1):
        g = loss_gradient(theta, X, r) + penalty * (theta - origin)
        first, second = BETAS[0] * first + (1 - BETAS[0]) * g, BETAS[1] * second + (1 - BETAS[1]) * g**2
        scale = np.sqrt(second / (1 - BETAS[1] ** step)) + ADAM_EPS
        rate = lr * (steps - step + 1) / steps
        theta = theta - rate * first / (1 - BETAS[0] ** step) / scale
    return theta


def loss_gradient(theta: Values, X: Rows, r: Values) -> Values:
    """Return the gradient in theta of the squared error 1/2 sum (f(x) - r)^2, [q].

    It is computed without the matrix of the gradients of all rows, [n, q].
    """
    W_1, W_2 = split_layers(theta, X.shape[1])
    hidden_units = X @ W_1.T
    activations = np.maximum(hidden_units, 0.0)
    error = math.sqrt(len(W_2)) * (math.sqrt(len(W_2)) * activations @ W_2 - r)
    inner = (error[:, None] * ((hidden_units > 0) * W_2)).T @ X
    return np.concatenate([inner.ravel(), error @ activations])
