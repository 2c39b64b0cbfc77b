"""One interface to the estimators of a reward from a context, so that a method can change nothing but the estimator."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit import calibrated, linucb, neural, restless, ridge
from fedcohort.bandit.calibrated import Noisy
from fedcohort.bandit.neural import Net
from fedcohort.bandit.restless import Hidden
from fedcohort.bandit.ridge import Ridge
from fedcohort.types import Values

B = TypeVar("B")
Rows = Float64[np.ndarray, "_n _d"]
Draws = np.random.Generator
Belief = Ridge | Noisy | Net | Hidden


@dataclass(frozen=True)
class Judged:
    """Each context's score, what is expected of it plus what there is to find out; NaN where it is no measurement."""

    score: Values
    exploit: Values
    explore: Values


def _sum_parts(exploit: Values, explore: Values) -> Judged:
    return Judged(exploit + explore, exploit, explore)


class Bandit(Protocol[B]):
    """An estimator of rewards: hyperparameters alone; what it learns is the belief that goes in and comes out."""

    def prior(self, d: int, rng: Draws | None) -> B:
        """Make the belief before the first reward, of d features; rng: None where nobody is judged by it."""
        ...

    def judge(self, belief: B, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Judged, B]:
        """Score the contexts X [n, d], and return the belief that goes on.

        gamma: the width of the confidence set, for those that have one. round: from 1.
        """
        ...

    def choose(self, belief: B, X: Rows) -> B:
        """Take in that the clients of contexts X [m, d] train in this round."""
        ...

    def learn(self, belief: B, X: Rows, r: Values) -> B:
        """Learn a round's rewards r [m] from the contexts X [m, d] that earned them."""
        ...

    def coefficients(self, belief: B) -> tuple[Values, Values]:
        """Return mean and standard deviation of each feature's coefficient, [d]; empty where there is none."""
        ...


@dataclass(frozen=True)
class Linear:
    """What Thompson sampling and LinUCB share. lam: ridge."""

    lam: float

    def prior(self, d: int, rng: Draws | None) -> Ridge:
        return ridge.prior(d, self.lam)

    def choose(self, belief: Ridge, X: Rows) -> Ridge:
        return belief

    def learn(self, belief: Ridge, X: Rows, r: Values) -> Ridge:
        return ridge.learn(belief, X, r)

    def coefficients(self, belief: Ridge) -> tuple[Values, Values]:
        return ridge.estimate(belief), ridge.deviation(belief)


@dataclass(frozen=True)
class Thompson(Linear):
    """theta is drawn from its posterior, once a round."""

    def judge(self, belief: Ridge, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Judged, Ridge]:
        mean = ridge.estimate(belief)
        theta = ridge.sample(belief, gamma, rng.standard_normal(len(mean)))
        return Judged(X @ theta, X @ mean, X @ (theta - mean)), belief


@dataclass(frozen=True)
class LinUCB(Linear):
    """The upper end of the confidence set; nothing is drawn."""

    def judge(self, belief: Ridge, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Judged, Ridge]:
        good = ridge.usable(X)
        width = np.full(len(X), np.nan)
        width[good] = linucb.width(belief, X[good])
        return _sum_parts(X @ ridge.estimate(belief), gamma * width), belief


@dataclass(frozen=True)
class Calibrated:
    """Thompson sampling with the noise estimated (`calibrated.py`): gamma is scale x sigma.

    Attributes:
        lam: ridge.
        scale: 1 for the posterior itself, 0 for a greedy choice.
    """

    lam: float
    scale: float

    def prior(self, d: int, rng: Draws | None) -> Noisy:
        return Noisy(ridge.prior(d, self.lam))

    def judge(self, belief: Noisy, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Judged, Noisy]:
        width = self.scale * calibrated.sigma(belief)
        return Thompson(self.lam).judge(belief.ridge, X, width, round, rng)[0], belief

    def choose(self, belief: Noisy, X: Rows) -> Noisy:
        return belief

    def learn(self, belief: Noisy, X: Rows, r: Values) -> Noisy:
        return calibrated.learn(belief, X, r)

    def coefficients(self, belief: Noisy) -> tuple[Values, Values]:
        return ridge.estimate(belief.ridge), calibrated.sigma(belief) * ridge.deviation(belief.ridge)


@dataclass(frozen=True)
class Neural:
    """The neural bandit, with its options.

    Attributes:
        nu: of the bonus.
        pairs: of hidden units.
        steps, lr: of Adam, a round.
    """

    lam: float
    nu: float
    pairs: int
    steps: int
    lr: float

    def prior(self, d: int, rng: Draws | None) -> Net:
        return neural.fresh(d, self.pairs, self.lam, rng)

    def judge(self, belief: Net, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Judged, Net]:
        mean, width, belief = neural.judge(belief, X)
        return _sum_parts(mean, self.nu * width), belief

    def choose(self, belief: Net, X: Rows) -> Net:
        return neural.choose(belief, X)

    def learn(self, belief: Net, X: Rows, r: Values) -> Net:
        return neural.learn(belief, X, r, self.lam, self.steps, self.lr)

    def coefficients(self, belief: Net) -> tuple[Values, Values]:
        return np.empty(0), np.empty(0)


@dataclass(frozen=True)
class Restless:
    """The restless bandit, with its options.

    Attributes:
        states: J.
        c: of the rounds of exploration.
    """

    lam: float
    states: int
    c: float

    def prior(self, d: int, rng: Draws | None) -> Hidden:
        return restless.fresh(d, self.states, self.lam, rng)

    def judge(self, belief: Hidden, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Judged, Hidden]:
        expected = restless.predict(belief, X)
        if not restless.due(belief.explored, round, self.c):
            return _sum_parts(expected, 0.0 * expected), belief
        alike = 0.0 * expected  # NaN stays
        return _sum_parts(alike, alike), restless.explore(belief)

    def choose(self, belief: Hidden, X: Rows) -> Hidden:
        return belief

    def learn(self, belief: Hidden, X: Rows, r: Values) -> Hidden:
        return restless.learn(belief, X, r)

    def coefficients(self, belief: Hidden) -> tuple[Values, Values]:
        return restless.summarise(belief)
