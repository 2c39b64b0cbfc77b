"""One interface to the estimators of a reward from a context, so that a method can replace only its estimator."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit import calibrated, linucb, neural, restless, ridge
from fedcohort.bandit.calibrated import NoisyRidge
from fedcohort.bandit.neural import Network
from fedcohort.bandit.restless import HiddenMarkov
from fedcohort.bandit.ridge import Ridge
from fedcohort.types import Values

B = TypeVar("B")
Rows = Float64[np.ndarray, "_n _d"]
Draws = np.random.Generator
Belief = Ridge | NoisyRidge | Network | HiddenMarkov


@dataclass(frozen=True)
class Scores:
    """The scores of contexts, [n]; NaN for a context that is not valid.

    Attributes:
        score: exploit + explore.
        exploit: expected reward.
        explore: bonus or random deviation.
    """

    score: Values
    exploit: Values
    explore: Values


def _add_bonus(exploit: Values, explore: Values) -> Scores:
    return Scores(exploit + explore, exploit, explore)


class Bandit(Protocol[B]):
    """An estimator of rewards: it holds hyperparameters, and its methods take a belief and return the next one."""

    def prior(self, d: int, rng: Draws | None) -> B:
        """Return the estimator's belief about rewards before the first reward.

        Args:
            d: number of features.
            rng: generator of random initial values; None if the belief is not used for scores.
        """
        ...

    def judge(self, belief: B, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Scores, B]:
        """Return the scores of the clients' contexts, and the belief after scoring.

        Args:
            belief: the current belief.
            X: contexts, [n, d].
            gamma: width of the confidence set, for estimators that have one.
            round: number of the round, from 1.
            rng: generator of this round's draws.
        """
        ...

    def choose(self, belief: B, X: Rows) -> B:
        """Return the belief after the clients with contexts X [m, d] were selected."""
        ...

    def learn(self, belief: B, X: Rows, r: Values) -> B:
        """Return the belief after the rewards r [m] of the contexts X [m, d]."""
        ...

    def coefficients(self, belief: B) -> tuple[Values, Values]:
        """Return the mean and the standard deviation of each feature's coefficient, [d] each.

        Empty without coefficients.
        """
        ...


@dataclass(frozen=True)
class Linear:
    """A bandit with linear rewards and a ridge-regression posterior, the base of Thompson sampling and LinUCB.

    Attributes:
        lam: ridge.
    """

    lam: float

    def prior(self, d: int, rng: Draws | None) -> Ridge:
        return ridge.prior_belief(d, self.lam)

    def choose(self, belief: Ridge, X: Rows) -> Ridge:
        return belief

    def learn(self, belief: Ridge, X: Rows, r: Values) -> Ridge:
        return ridge.add_rewards(belief, X, r)

    def coefficients(self, belief: Ridge) -> tuple[Values, Values]:
        return ridge.posterior_mean(belief), ridge.posterior_deviation(belief)


@dataclass(frozen=True)
class Thompson(Linear):
    """Thompson sampling: theta is drawn from its posterior once a round."""

    def judge(self, belief: Ridge, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Scores, Ridge]:
        mean = ridge.posterior_mean(belief)
        theta = ridge.posterior_draw(belief, gamma, rng.standard_normal(len(mean)))
        return Scores(X @ theta, X @ mean, X @ (theta - mean)), belief


@dataclass(frozen=True)
class LinUCB(Linear):
    """LinUCB: scores are the upper ends of the confidence intervals, without random draws."""

    def judge(self, belief: Ridge, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Scores, Ridge]:
        valid = ridge.find_valid_rows(X)
        width = np.full(len(X), np.nan)
        width[valid] = linucb.confidence_widths(belief, X[valid])
        return _add_bonus(X @ ridge.posterior_mean(belief), gamma * width), belief


@dataclass(frozen=True)
class Calibrated:
    """Thompson sampling with estimated noise (`calibrated.py`): gamma is scale x sigma.

    Attributes:
        lam: ridge.
        scale: 1 for the posterior itself, 0 for a greedy choice.
    """

    lam: float
    scale: float

    def prior(self, d: int, rng: Draws | None) -> NoisyRidge:
        return NoisyRidge(ridge.prior_belief(d, self.lam))

    def judge(self, belief: NoisyRidge, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Scores, NoisyRidge]:
        width = self.scale * calibrated.estimate_noise_deviation(belief)
        return Thompson(self.lam).judge(belief.ridge, X, width, round, rng)[0], belief

    def choose(self, belief: NoisyRidge, X: Rows) -> NoisyRidge:
        return belief

    def learn(self, belief: NoisyRidge, X: Rows, r: Values) -> NoisyRidge:
        return calibrated.add_rewards(belief, X, r)

    def coefficients(self, belief: NoisyRidge) -> tuple[Values, Values]:
        return ridge.posterior_mean(belief.ridge), calibrated.estimate_noise_deviation(
            belief
        ) * ridge.posterior_deviation(belief.ridge)


@dataclass(frozen=True)
class Neural:
    """NeuralUCB, a bandit whose expected reward is a small neural network (`neural.py`).

    Attributes:
        lam: ridge.
        nu: weight of the bonus.
        pairs: pairs of hidden units.
        steps: steps of Adam per round.
        lr: learning rate of Adam.
    """

    lam: float
    nu: float
    pairs: int
    steps: int
    lr: float

    def prior(self, d: int, rng: Draws | None) -> Network:
        return neural.initial_network(d, self.pairs, self.lam, rng)

    def judge(self, belief: Network, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Scores, Network]:
        mean, width, belief = neural.predict_with_bonus(belief, X)
        return _add_bonus(mean, self.nu * width), belief

    def choose(self, belief: Network, X: Rows) -> Network:
        return neural.add_selected_gradients(belief, X)

    def learn(self, belief: Network, X: Rows, r: Values) -> Network:
        return neural.add_rewards_and_fit(belief, X, r, self.lam, self.steps, self.lr)

    def coefficients(self, belief: Network) -> tuple[Values, Values]:
        return np.empty(0), np.empty(0)


@dataclass(frozen=True)
class Restless:
    """A bandit whose linear rewards depend on a hidden Markov state (`restless.py`).

    Attributes:
        lam: ridge.
        states: J, number of hidden states.
        c: rounds of exploration are c ln(t + 1).
    """

    lam: float
    states: int
    c: float

    def prior(self, d: int, rng: Draws | None) -> HiddenMarkov:
        return restless.initial_belief(d, self.states, self.lam, rng)

    def judge(self, belief: HiddenMarkov, X: Rows, gamma: float, round: int, rng: Draws) -> tuple[Scores, HiddenMarkov]:
        expected_rewards = restless.predict(belief, X)
        if not restless.is_exploring(belief.explored, round, self.c):
            return _add_bonus(expected_rewards, 0.0 * expected_rewards), belief
        equal_scores = 0.0 * expected_rewards  # NaN stays
        return _add_bonus(equal_scores, equal_scores), restless.count_exploration(belief)

    def choose(self, belief: HiddenMarkov, X: Rows) -> HiddenMarkov:
        return belief

    def learn(self, belief: HiddenMarkov, X: Rows, r: Values) -> HiddenMarkov:
        return restless.add_rewards(belief, X, r)

    def coefficients(self, belief: HiddenMarkov) -> tuple[Values, Values]:
        return restless.coefficient_moments(belief)
