"""A restless linear bandit: one hidden Markov state, common to all arms, decides which theta pays the rewards.

    r = theta_s' x + noise of variance sigma^2,   s -> s' with probability P[s, s']
    prior = pi P;   pi <- softmax(log prior - sum over the cohort of (r - theta_j' x)^2 / (2 sigma^2))
    V_j <- V_j + pi_j sum x x',   b_j <- b_j + pi_j sum r x,   theta_j = V_j^-1 b_j
    C <- C + (pi_old[i] pi_new[j] P[i, j], over its sum),   P = (C + 1) over its row sums
    score = sum_j (pi P)_j theta_j' x,   but everybody alike while fewer than c ln(t + 1) rounds were explored

A surrogate for the setting of Yemini, Leshem and Somekh-Baruch, "The Restless Hidden Markov Bandit with Linear Rewards
and Side Information" (arXiv 1910.10271), not their algorithm. sigma^2 is the variance of the first cohort's rewards,
then the running mean of the squared errors of the predictions. P starts with .9 on the diagonal, as 10 (J - 1) past
transitions from each state would leave it. theta_j starts at random within 1e-2: equal ones would stay equal for ever.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import Ridge, deviation, estimate, usable
from fedcohort.types import Values

STAY = 0.9  # the first diagonal of P
START = 1e-2  # size of the first theta_j
NOISE = 1e-6  # sigma^2 is at least this

Rows = Float64[np.ndarray, "_n _d"]


@dataclass(frozen=True)
class Hidden:
    """The belief about what is hidden.

    Attributes:
        belief: pi, [J].
        counts: C, [J, J].
        V: [J, d, d], b: [J, d].
        squares, count: sigma^2 is squares / count.
        explored: rounds in which everybody was alike.
    """

    belief: Values
    counts: Float64[np.ndarray, "_J _J"]
    V: Float64[np.ndarray, "_J _d _d"]
    b: Float64[np.ndarray, "_J _d"]
    squares: float
    count: int
    explored: int


def fresh(d: int, states: int, lam: float, rng: np.random.Generator | None) -> Hidden:
    """Make the belief before the first reward; rng: None leaves every theta_j at zero, where it never moves."""
    theta = np.zeros((states, d)) if rng is None else rng.uniform(-START, START, (states, d))
    off = max(states - 1, 1)
    counts = (STAY / (1 - STAY) * off - 1) * np.eye(states)  # (C + 1) over its row sums is .9 and .1 / (J - 1)
    V = np.tile(lam * np.eye(d), (states, 1, 1))
    return Hidden(np.full(states, 1 / states), counts, V, lam * theta, 0.0, 0, 0)


def transitions(counts: Float64[np.ndarray, "J J"]) -> Float64[np.ndarray, "J J"]:
    """Return P from the transitions counted, each once more."""
    return np.asarray((counts + 1) / (counts + 1).sum(axis=1, keepdims=True))


def coefficients(past: Hidden) -> Float64[np.ndarray, "_J _d"]:
    """Return theta_j, a row a state, [J, d]."""
    return np.stack([estimate(Ridge(V, b)) for V, b in zip(past.V, past.b, strict=True)])


def update(prior: Values, theta: Rows, X: Rows, r: Values, variance: float) -> Values:
    """Return pi after the rewards r of the contexts X; in logarithms, so that no likelihood underflows."""
    fit = ((r[:, None] - X @ theta.T) ** 2).sum(axis=0) / (2 * variance)
    log = np.log(np.maximum(prior, 1e-300)) - fit
    weight = np.exp(log - log.max())
    return np.asarray(weight / weight.sum())


def softly(past: Hidden, belief: Values, X: Rows, r: Values) -> Hidden:
    """Let every state's ridge regression learn the rewards, to the share that it is believed in."""
    V = past.V + belief[:, None, None] * (X.T @ X)
    return replace(past, V=V, b=past.b + belief[:, None] * (r @ X))


def ahead(past: Hidden) -> Values:
    """Return pi P, the belief in the next round's state, [J]."""
    return np.asarray(past.belief @ transitions(past.counts))


def predict(past: Hidden, X: Rows) -> Values:
    """Return the reward to be expected of each row, [n], NaN where it is no measurement."""
    good = usable(X)
    out = np.full(len(X), np.nan)
    out[good] = X[good] @ (ahead(past) @ coefficients(past))
    return out


def due(explored: int, t: int, c: float) -> bool:
    """Whether round t, from 1, is one of exploration."""
    return explored < c * math.log(t + 1)


def explore(past: Hidden) -> Hidden:
    """Count one more round in which everybody was alike."""
    return replace(past, explored=past.explored + 1)


def learn(past: Hidden, X: Rows, r: Values) -> Hidden:
    """Move on by one round: a row of X and a reward of r for each pull.

    Rows that are no measurement are left out.
    """
    good = usable(X, r)
    X, r, prior = X[good], r[good], ahead(past)
    if not len(r):
        return replace(past, belief=prior)
    first = past.count == 0
    error = r - r.mean() if first else r - predict(past, X)
    squares, count = past.squares + float(error @ error), past.count + len(r)
    known = squares / count if first else past.squares / past.count
    belief = update(prior, coefficients(past), X, r, max(known, NOISE))
    transition = np.outer(past.belief, belief) * transitions(past.counts)
    after = softly(past, belief, X, r)
    return replace(
        after, belief=belief, counts=past.counts + transition / transition.sum(), squares=squares, count=count
    )


def summarise(past: Hidden) -> tuple[Values, Values]:
    """Mean and standard deviation of each coefficient in the next round, over states and within each, [d]."""
    share, theta = ahead(past), coefficients(past)
    mean = share @ theta
    within = np.stack([deviation(Ridge(V, b)) for V, b in zip(past.V, past.b, strict=True)]) ** 2
    return mean, np.sqrt(share @ (within + (theta - mean) ** 2))
