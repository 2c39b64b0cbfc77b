"""One interface to the estimators of a reward from a context, so that a method can replace only its estimator."""

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.random import Generator

from fedcohort.bandit import calibrated, linucb, neural, restless, ridge
from fedcohort.bandit.calibrated import NoisyRidge
from fedcohort.bandit.neural import NetworkBelief
from fedcohort.bandit.restless import HiddenMarkov
from fedcohort.bandit.ridge import ContextMatrix, Ridge
from fedcohort.types import Values

B = TypeVar("B")
BanditBelief = Ridge | NoisyRidge | NetworkBelief | HiddenMarkov


@dataclass(frozen=True)
class BanditScores:
    """Scores of n contexts; NaN for a context that is not finite.

    Attributes:
        score: expected reward plus exploration term, [n].
        expected_reward: mean of the reward that the belief predicts, [n].
        exploration_term: exploration term, [n]: a bonus, or a random deviation.
    """

    score: Values
    expected_reward: Values
    exploration_term: Values


def _score_with_bonus(expected_rewards: Values, bonuses: Values) -> BanditScores:
    return BanditScores(expected_rewards + bonuses, expected_rewards, bonuses)


class Bandit(Protocol[B]):
    """A contextual bandit with its hyperparameters; methods take a belief about rewards and return the next one."""

    def prior(self, n_features: int, rng: Generator | None) -> B:
        """Return the belief about the rewards of contexts before the first reward.

        Args:
            n_features: number of features of a context.
            rng: random generator of initial values; None if the belief is not used for scores.
        """
        ...

    def score(self, belief: B, X: ContextMatrix, gamma: float, round: int, rng: Generator) -> tuple[BanditScores, B]:
        """Return the scores of the clients' contexts, and the belief after scoring.

        Args:
            belief: the current belief.
            X: context of each client, [n, d].
            gamma: exploration width, for bandits that use one.
            round: number of the round, counted from 0; the selector scores from round 1 on.
            rng: random generator of this round's draws.
        """
        ...

    def record_cohort(self, belief: B, X: ContextMatrix) -> B:
        """Return `belief` after the selection of clients with contexts X [m, d], whose rewards are not known yet."""
        ...

    def learn(self, belief: B, X: ContextMatrix, r: Values) -> B:
        """Return `belief` updated with the rewards r [m] of the contexts X [m, d]."""
        ...

    def coefficients(self, belief: B) -> tuple[Values, Values]:
        """Return mean and standard deviation of each feature's coefficient in `belief`, [d]; [0] if it has none."""
        ...


@dataclass(frozen=True)
class LinearBandit:
    """A bandit with linear rewards and a ridge-regression posterior, the base of Thompson sampling and LinUCB.

    Attributes:
        lam: ridge penalty of the regression.
    """

    lam: float

    def prior(self, n_features: int, rng: Generator | None) -> Ridge:
        return ridge.prior_belief(n_features, self.lam)

    def record_cohort(self, belief: Ridge, X: ContextMatrix) -> Ridge:
        return belief

    def learn(self, belief: Ridge, X: ContextMatrix, r: Values) -> Ridge:
        return ridge.add_rewards(belief, X, r)

    def coefficients(self, belief: Ridge) -> tuple[Values, Values]:
        return ridge.posterior_mean(belief), ridge.posterior_deviation(belief)


@dataclass(frozen=True)
class Thompson(LinearBandit):
    """A linear bandit with Thompson sampling: scores use coefficients drawn from their posterior once a round."""

    def score(
        self, belief: Ridge, X: ContextMatrix, gamma: float, round: int, rng: Generator
    ) -> tuple[BanditScores, Ridge]:
        mean_rewards = ridge.posterior_mean(belief)
        theta = ridge.posterior_draw(belief, gamma, rng.standard_normal(len(mean_rewards)))
        return BanditScores(X @ theta, X @ mean_rewards, X @ (theta - mean_rewards)), belief


@dataclass(frozen=True)
class LinUCB(LinearBandit):
    """A linear bandit whose scores are the upper ends of confidence intervals of the rewards (LinUCB)."""

    def score(
        self, belief: Ridge, X: ContextMatrix, gamma: float, round: int, rng: Generator
    ) -> tuple[BanditScores, Ridge]:
        is_valid_row = ridge.find_valid_rows(X)
        confidence_widths = np.full(len(X), np.nan)
        confidence_widths[is_valid_row] = linucb.confidence_widths(belief, X[is_valid_row])
        return _score_with_bonus(X @ ridge.posterior_mean(belief), gamma * confidence_widths), belief


@dataclass(frozen=True)
class CalibratedThompson:
    """A linear bandit with Thompson sampling, scaled by the estimated noise of the rewards (`calibrated.py`).

    Attributes:
        lam: ridge penalty of the regression.
        gamma_scale: factor of the noise's standard deviation: 1 draws from the posterior, 0 chooses greedily.
    """

    lam: float
    gamma_scale: float

    def prior(self, n_features: int, rng: Generator | None) -> NoisyRidge:
        return NoisyRidge(ridge.prior_belief(n_features, self.lam))

    def score(
        self, belief: NoisyRidge, X: ContextMatrix, gamma: float, round: int, rng: Generator
    ) -> tuple[BanditScores, NoisyRidge]:
        scaled_noise_deviation = self.gamma_scale * calibrated.estimate_noise_deviation(belief)
        return Thompson(self.lam).score(belief.ridge, X, scaled_noise_deviation, round, rng)[0], belief

    def record_cohort(self, belief: NoisyRidge, X: ContextMatrix) -> NoisyRidge:
        return belief

    def learn(self, belief: NoisyRidge, X: ContextMatrix, r: Values) -> NoisyRidge:
        return calibrated.add_rewards(belief, X, r)

    def coefficients(self, belief: NoisyRidge) -> tuple[Values, Values]:
        noise_deviation = calibrated.estimate_noise_deviation(belief)
        return ridge.posterior_mean(belief.ridge), noise_deviation * ridge.posterior_deviation(belief.ridge)


@dataclass(frozen=True)
class NeuralBandit:
    """NeuralUCB, a bandit whose expected reward is a small neural network (`neural.py`).

    Attributes:
        lam: ridge penalty on the covariance of the network's gradients.
        bonus_factor: factor of the exploration bonus.
        n_unit_pairs: number of pairs of hidden units.
        n_adam_steps: number of Adam steps per round.
        lr: learning rate of Adam.
    """

    lam: float
    bonus_factor: float
    n_unit_pairs: int
    n_adam_steps: int
    lr: float

    def prior(self, n_features: int, rng: Generator | None) -> NetworkBelief:
        return neural.initial_network(n_features, self.n_unit_pairs, self.lam, rng)

    def score(
        self, belief: NetworkBelief, X: ContextMatrix, gamma: float, round: int, rng: Generator
    ) -> tuple[BanditScores, NetworkBelief]:
        mean_rewards, bonuses, belief = neural.predict_with_bonus(belief, X)
        return _score_with_bonus(mean_rewards, self.bonus_factor * bonuses), belief

    def record_cohort(self, belief: NetworkBelief, X: ContextMatrix) -> NetworkBelief:
        return neural.add_selected_gradients(belief, X)

    def learn(self, belief: NetworkBelief, X: ContextMatrix, r: Values) -> NetworkBelief:
        return neural.add_rewards_and_fit(belief, X, r, self.lam, self.n_adam_steps, self.lr)

    def coefficients(self, belief: NetworkBelief) -> tuple[Values, Values]:
        return np.empty(0), np.empty(0)


@dataclass(frozen=True)
class RestlessBandit:
    """A bandit whose linear rewards depend on a hidden Markov state (`restless.py`).

    Attributes:
        lam: ridge penalty of the regression.
        n_hidden_states: number of hidden states.
        exploration_factor: the cohort of round t is random if fewer than this factor x ln(t + 1) cohorts were so far.
    """

    lam: float
    n_hidden_states: int
    exploration_factor: float

    def prior(self, n_features: int, rng: Generator | None) -> HiddenMarkov:
        return restless.initial_belief(n_features, self.n_hidden_states, self.lam, rng)

    def score(
        self, belief: HiddenMarkov, X: ContextMatrix, gamma: float, round: int, rng: Generator
    ) -> tuple[BanditScores, HiddenMarkov]:
        expected_rewards = restless.predict_rewards(belief, X)
        if not restless.is_exploration_round(belief.n_explored_rounds, round, self.exploration_factor):
            return _score_with_bonus(expected_rewards, 0.0 * expected_rewards), belief
        zero_or_nan_scores = 0.0 * expected_rewards  # NaN stays
        next_belief = replace(belief, n_explored_rounds=belief.n_explored_rounds + 1)
        return _score_with_bonus(zero_or_nan_scores, zero_or_nan_scores), next_belief

    def record_cohort(self, belief: HiddenMarkov, X: ContextMatrix) -> HiddenMarkov:
        return belief

    def learn(self, belief: HiddenMarkov, X: ContextMatrix, r: Values) -> HiddenMarkov:
        return restless.add_rewards(belief, X, r)

    def coefficients(self, belief: HiddenMarkov) -> tuple[Values, Values]:
        return restless.coefficient_moments(belief)
