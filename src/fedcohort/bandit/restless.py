"""A restless linear bandit: a hidden Markov state, common to all arms, decides which theta generates the rewards.

A surrogate, in the setting of this paper: Yemini, Leshem, Somekh-Baruch, "The Restless Hidden Markov Bandit with Linear
Rewards and Side Information", IEEE Transactions on Signal Processing 2021, arXiv 1910.10271.

    reward:  r = theta_s' x + noise of variance sigma^2;  state s changes to s' with probability P[s, s']
    prior:  pi P
    belief:  pi <- softmax(log prior - sum over the cohort of (r - theta_j' x)^2 / (2 sigma^2))
    regressions:  V_j <- V_j + pi_j sum x x',  b_j <- b_j + pi_j sum r x,  theta_j = V_j^-1 b_j
    transitions:  C <- C + (pi_old[i] pi_new[j] P[i, j], over its sum),  P = (C + 1) over its row sums
    score:  sum_j (pi P)_j theta_j' x; equal for all while fewer than c ln(t + 1) rounds were explored

sigma^2 is the variance of the first cohort's rewards, then the running mean of the squared prediction errors. P starts
with .9 on the diagonal, as after 10 (J - 1) transitions from each state. theta_j starts at random within 1e-2, as equal
ones would stay equal.

Departures from the paper: this is another algorithm. The paper's chooses an action in a polytope.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64

from fedcohort.bandit.ridge import ContextMatrix, Ridge, find_valid_rows, posterior_deviation, posterior_mean
from fedcohort.types import Values

INITIAL_STAY_PROBABILITY = 0.9  # initial diagonal of P
MAX_THETA_0 = 1e-2  # size of the initial theta_j
MIN_NOISE_VARIANCE = 1e-6  # lower bound of sigma^2


@dataclass(frozen=True)
class HiddenMarkov:
    """The belief about the hidden state, its transitions and the coefficients of rewards in each of J states.

    Attributes:
        belief: probability of each hidden state in the last round, [J].
        transition_counts: expected number of transitions between states, [J, J].
        V: matrix of each state's ridge regression, [J, d, d].
        b: vector of each state's ridge regression, [J, d].
        squared_error_sum: sum of the squared prediction errors of rewards.
        n_rewards: number of rewards.
        n_explored_rounds: number of rounds with random cohorts.
    """

    belief: Values
    transition_counts: Float64[np.ndarray, "_J _J"]
    V: Float64[np.ndarray, "_J _d _d"]
    b: Float64[np.ndarray, "_J _d"]
    squared_error_sum: float
    n_rewards: int
    n_explored_rounds: int


def initial_belief(n_features: int, n_states: int, lam: float, rng: np.random.Generator | None) -> HiddenMarkov:
    """Return the belief before the first reward.

    Args:
        n_features: number of features of a context.
        n_states: number of hidden states.
        lam: ridge penalty of the regressions.
        rng: random generator of the coefficients; None leaves them at zero, so that all states stay equal.
    """
    theta = np.zeros((n_states, n_features))
    if rng is not None:
        theta = rng.uniform(-MAX_THETA_0, MAX_THETA_0, theta.shape)
    # with this number of stays, (C + 1) over its row sums is .9 and .1 / (J - 1)
    n_stay_transitions = INITIAL_STAY_PROBABILITY / (1 - INITIAL_STAY_PROBABILITY) * max(n_states - 1, 1) - 1
    transition_counts = n_stay_transitions * np.eye(n_states)
    V = np.tile(lam * np.eye(n_features), (n_states, 1, 1))
    return HiddenMarkov(np.full(n_states, 1 / n_states), transition_counts, V, lam * theta, 0.0, 0, 0)


def transition_matrix(transition_counts: Float64[np.ndarray, "J J"]) -> Float64[np.ndarray, "J J"]:
    """Return the transition probabilities between J hidden states, from `transition_counts` [J, J], [J, J]."""
    return np.asarray((transition_counts + 1) / (transition_counts + 1).sum(axis=1, keepdims=True))


def reward_coefficients(hmm: HiddenMarkov) -> Float64[np.ndarray, "_J _d"]:
    """Return the reward coefficients of each hidden state of `hmm`, [J, d]."""
    return np.stack([posterior_mean(Ridge(V, b)) for V, b in zip(hmm.V, hmm.b, strict=True)])


def update_state_belief(
    prior_belief: Values, theta: ContextMatrix, X: ContextMatrix, r: Values, noise_variance: float
) -> Values:
    """Return the probability of each hidden state after the rewards r of the contexts X, [J].

    Logarithms are normalised, so that no likelihood underflows.

    Args:
        prior_belief: probability of each state before the rewards, [J].
        theta: reward coefficients of each state, [J, d].
        X: contexts, [n, d].
        r: reward of each context, [n].
        noise_variance: variance of the reward noise.
    """
    squared_errors = ((r[:, None] - X @ theta.T) ** 2).sum(axis=0) / (2 * noise_variance)
    log_likelihoods = np.log(np.maximum(prior_belief, 1e-300)) - squared_errors
    relative_likelihoods = np.exp(log_likelihoods - log_likelihoods.max())
    return np.asarray(relative_likelihoods / relative_likelihoods.sum())


def update_state_regressions(hmm: HiddenMarkov, state_belief: Values, X: ContextMatrix, r: Values) -> HiddenMarkov:
    """Return `hmm` with the rewards r [n] of contexts X [n, d] added to each state's regression.

    `state_belief`, the probability of each state [J], weights the additions.
    """
    return replace(hmm, V=hmm.V + state_belief[:, None, None] * (X.T @ X), b=hmm.b + state_belief[:, None] * (r @ X))


def predict_state_belief(hmm: HiddenMarkov) -> Values:
    """Return the probability of each hidden state of `hmm` in the next round, [J]."""
    return np.asarray(hmm.belief @ transition_matrix(hmm.transition_counts))


def predict_rewards(hmm: HiddenMarkov, X: ContextMatrix) -> Values:
    """Return the reward that `hmm` expects of each row of X [n, d], [n]; NaN for a row with NaN or huge values."""
    is_valid_row = find_valid_rows(X)
    expected_rewards = np.full(len(X), np.nan)
    expected_rewards[is_valid_row] = X[is_valid_row] @ (predict_state_belief(hmm) @ reward_coefficients(hmm))
    return expected_rewards


def is_exploration_round(n_explored_rounds: int, round_number: int, exploration_factor: float) -> bool:
    """Return whether the cohort of round number t is random: if fewer than c ln(t + 1) rounds explored before.

    Args:
        n_explored_rounds: number of rounds with a random cohort so far.
        round_number: number t of the round, counted from 1.
        exploration_factor: factor c of the logarithm.
    """
    return n_explored_rounds < exploration_factor * math.log(round_number + 1)


def add_rewards(hmm: HiddenMarkov, X: ContextMatrix, r: Values) -> HiddenMarkov:
    """Return `hmm` after the rewards r [n] of the contexts X [n, d] of a round; invalid rows are left out."""
    is_valid_row = find_valid_rows(X, r)
    X, r, prior_belief = X[is_valid_row], r[is_valid_row], predict_state_belief(hmm)
    if not len(r):
        return replace(hmm, belief=prior_belief)
    is_first_cohort = hmm.n_rewards == 0
    residuals = r - r.mean() if is_first_cohort else r - predict_rewards(hmm, X)
    squared_error_sum, n_rewards = hmm.squared_error_sum + float(residuals @ residuals), hmm.n_rewards + len(r)
    noise_variance = squared_error_sum / n_rewards if is_first_cohort else hmm.squared_error_sum / hmm.n_rewards
    noise_variance = max(noise_variance, MIN_NOISE_VARIANCE)
    state_belief = update_state_belief(prior_belief, reward_coefficients(hmm), X, r, noise_variance)
    expected_transitions = np.outer(hmm.belief, state_belief) * transition_matrix(hmm.transition_counts)
    return replace(
        update_state_regressions(hmm, state_belief, X, r),
        belief=state_belief,
        transition_counts=hmm.transition_counts + expected_transitions / expected_transitions.sum(),
        squared_error_sum=squared_error_sum,
        n_rewards=n_rewards,
    )


def coefficient_moments(hmm: HiddenMarkov) -> tuple[Values, Values]:
    """Return mean and standard deviation of each reward coefficient of `hmm` in the next round, [d] each.

    The deviation includes the variation between states and the uncertainty within each state.
    """
    state_belief, theta = predict_state_belief(hmm), reward_coefficients(hmm)
    mean_coefficients = state_belief @ theta
    state_deviations = np.stack([posterior_deviation(Ridge(V, b)) for V, b in zip(hmm.V, hmm.b, strict=True)])
    return mean_coefficients, np.sqrt(state_belief @ (state_deviations**2 + (theta - mean_coefficients) ** 2))
