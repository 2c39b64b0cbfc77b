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

from fedcohort.bandit.ridge import ContextMatrix, find_valid_rows
from fedcohort.types import Values

MAX_PARAMETERS_FOR_FULL_Z = 512  # largest number of parameters for which Z is a full matrix
MAX_FITTED_REWARDS = 5000  # newest rewards that are fitted
ADAM_BETAS, ADAM_EPS = (0.9, 0.999), 1e-8  # Adam's
MIN_RELATIVE_SD = 1e-6  # deviations below this share of the mean are rounding of single-precision losses


@dataclass(frozen=True)
class NetworkBelief:
    """The belief of NeuralUCB: the network's weights, its confidence matrix, and the rewarded contexts.

    Attributes:
        theta: weights of both layers of h hidden units, first layer row by row, then output weights, [h (d + 1)].
        initial_theta: initial weights, from which each fit starts, [h (d + 1)].
        Z: confidence matrix of the q = h (d + 1) weights, [q, q], or its diagonal [q].
        X: rewarded contexts, not standardised, [n, d].
        r: rewards of these contexts, [n].
        n_scored: number of contexts scored so far.
        context_mean: mean of the scored contexts, [d].
        squared_deviations: sum of the scored contexts' squared deviations from the mean, [d].
    """

    theta: Values
    initial_theta: Values
    Z: Float64[np.ndarray, "_q *_q2"]
    X: ContextMatrix
    r: Values
    n_scored: int
    context_mean: Values
    squared_deviations: Values

    def hidden_width(self) -> int:
        """Return the number of hidden units."""
        return len(self.theta) // (len(self.context_mean) + 1)


def initial_network(n_features: int, n_unit_pairs: int, lam: float, rng: np.random.Generator | None) -> NetworkBelief:
    """Return the network's belief before the first context.

    Args:
        n_features: number of features of a context, d.
        n_unit_pairs: number of pairs of hidden units with output weights of opposite sign.
        lam: ridge penalty, the diagonal of the confidence matrix.
        rng: random generator of the weights; None leaves them at zero, where nothing is learnt.
    """
    first_half_weights = np.zeros((n_unit_pairs, n_features + 1))
    if rng is not None:
        first_half_weights = rng.normal(0.0, math.sqrt(2 / n_unit_pairs), first_half_weights.shape)
    input_weights, output_weights = first_half_weights[:, :n_features], first_half_weights[:, n_features]
    theta = np.concatenate([np.tile(input_weights.ravel(), 2), output_weights, -output_weights])
    Z = lam * (np.eye(len(theta)) if len(theta) <= MAX_PARAMETERS_FOR_FULL_Z else np.ones(len(theta)))
    X, r, zero_context_moments = np.empty((0, n_features)), np.empty(0), np.zeros(n_features)
    return NetworkBelief(theta, theta, Z, X, r, 0, zero_context_moments, zero_context_moments)


def unpack_layer_weights(theta: Values, n_features: int) -> tuple[ContextMatrix, Values]:
    """Return the weights [h, n_features] and [h] of both layers from the flat vector `theta` [h (n_features + 1)]."""
    n_hidden = len(theta) // (n_features + 1)
    return theta[: n_hidden * n_features].reshape(n_hidden, n_features), theta[n_hidden * n_features :]


def network_outputs(theta: Values, X: ContextMatrix) -> Values:
    """Return the output of the network with weights `theta` [q] for each row of X [n, d], [n].

    The two halves of the hidden units are summed separately, so that copies of opposite sign cancel exactly.
    """
    W_1, W_2 = unpack_layer_weights(theta, X.shape[1])
    n_half_units = len(W_2) // 2
    first_half_units_output, second_half_units_output = (
        np.maximum(X @ W_1[hidden_unit_slice].T, 0.0) @ W_2[hidden_unit_slice]
        for hidden_unit_slice in (slice(n_half_units), slice(n_half_units, None))
    )
    return np.asarray(math.sqrt(len(W_2)) * (first_half_units_output + second_half_units_output))


def output_gradients(theta: Values, X: ContextMatrix) -> ContextMatrix:
    """Return the gradient of the output with respect to the weights `theta` [q] for each row of X [n, d], [n, q]."""
    W_1, W_2 = unpack_layer_weights(theta, X.shape[1])
    preactivations = X @ W_1.T
    first_layer_gradients = (((preactivations > 0) * W_2)[:, :, None] * X[:, None, :]).reshape(len(X), W_1.size)
    return math.sqrt(len(W_2)) * np.hstack([first_layer_gradients, np.maximum(preactivations, 0.0)])


def exploration_bonus(Z: Float64[np.ndarray, "_q *_q2"], gradients: ContextMatrix, n_hidden: int) -> Values:
    """Return the exploration bonus sqrt(g' Z^-1 g / h) of each gradient g, [n].

    Args:
        Z: confidence matrix [q, q], or its diagonal [q].
        gradients: a gradient in each row, [n, q].
        n_hidden: number of hidden units, h.
    """
    if Z.ndim == 1:
        return np.asarray(np.sqrt((gradients**2 / Z).sum(axis=1) / n_hidden))
    whitened_gradients = np.linalg.solve(np.linalg.cholesky(Z), gradients.T)
    return np.asarray(np.sqrt((whitened_gradients**2).sum(axis=0) / n_hidden))


def add_to_context_moments(network: NetworkBelief, X: ContextMatrix) -> NetworkBelief:
    """Return `network` with X [n, d] added to its mean and variance of contexts (Chan, Golub, LeVeque 1983)."""
    n_contexts = len(X)
    if not n_contexts:
        return network
    new_n_scored, new_contexts_mean = network.n_scored + n_contexts, X.mean(axis=0)
    context_mean_change = new_contexts_mean - network.context_mean
    squared_deviations = network.squared_deviations + ((X - new_contexts_mean) ** 2).sum(axis=0)
    squared_deviations = squared_deviations + context_mean_change**2 * (network.n_scored * n_contexts / new_n_scored)
    context_mean = network.context_mean + context_mean_change * (n_contexts / new_n_scored)
    return replace(network, n_scored=new_n_scored, context_mean=context_mean, squared_deviations=squared_deviations)


def standardise_contexts(network: NetworkBelief, X: ContextMatrix) -> ContextMatrix:
    """Return X [n, d] standardised by the mean and deviation of all contexts that `network` has scored, [n, d].

    A feature that varies only by rounding becomes 0.
    """
    feature_sd = np.sqrt(network.squared_deviations / max(network.n_scored, 1))
    min_feature_sd = MIN_RELATIVE_SD * np.maximum(np.abs(network.context_mean), 1e-300)
    return np.asarray(
        np.divide(X - network.context_mean, feature_sd, out=np.zeros_like(X), where=feature_sd > min_feature_sd)
    )


def predict_with_bonus(network: NetworkBelief, X: ContextMatrix) -> tuple[Values, Values, NetworkBelief]:
    """Return output and exploration bonus of `network` for each row of X [n, d], [n] each, and the next belief.

    The next belief includes X in its moments. Output and bonus are NaN for a row with NaN or values from 1e12 on.
    """
    valid_rows = find_valid_rows(X)
    network = add_to_context_moments(network, X[valid_rows])
    mean_rewards, bonuses = np.full(len(X), np.nan), np.full(len(X), np.nan)
    standardised_contexts = standardise_contexts(network, X[valid_rows])
    mean_rewards[valid_rows] = network_outputs(network.theta, standardised_contexts)
    bonuses[valid_rows] = exploration_bonus(
        network.Z, output_gradients(network.theta, standardised_contexts), network.hidden_width()
    )
    return mean_rewards, bonuses, network


def add_selected_gradients(network: NetworkBelief, X: ContextMatrix) -> NetworkBelief:
    """Return `network` with the gradients of the selected contexts X [n, d] added to its confidence matrix."""
    gradients = output_gradients(network.theta, standardise_contexts(network, X[find_valid_rows(X)]))
    gradient_products = gradients.T @ gradients if network.Z.ndim == 2 else (gradients**2).sum(axis=0)
    return replace(network, Z=network.Z + gradient_products / network.hidden_width())


def add_rewards_and_fit(
    network: NetworkBelief, X: ContextMatrix, r: Values, lam: float, n_adam_steps: int, lr: float
) -> NetworkBelief:
    """Return the network fitted to all rewards so far; rows with NaN or values from 1e12 on are left out.

    Args:
        network: the belief before.
        X: contexts of the newly rewarded selections, [n, d].
        r: rewards of these contexts, [n].
        lam: ridge penalty.
        n_adam_steps: number of Adam steps.
        lr: initial learning rate, which falls linearly.
    """
    valid_rows = find_valid_rows(X, r)
    X = np.concatenate([network.X, X[valid_rows]])[-MAX_FITTED_REWARDS:]
    r = np.concatenate([network.r, r[valid_rows]])[-MAX_FITTED_REWARDS:]
    if not valid_rows.any():
        return network
    theta = fit_weights(network.initial_theta, standardise_contexts(network, X), r, lam, n_adam_steps, lr)
    return replace(network, theta=theta, X=X, r=r)


def fit_weights(initial_theta: Values, X: ContextMatrix, r: Values, lam: float, n_adam_steps: int, lr: float) -> Values:
    """Return the weights after full-batch steps of Adam, [h (d + 1)]; the learning rate falls to lr / n_adam_steps.

    Args:
        initial_theta: initial weights, [h (d + 1)].
        X: standardised contexts, [n, d].
        r: rewards of these contexts, [n].
        lam: ridge penalty.
        n_adam_steps: number of Adam steps.
        lr: initial learning rate.
    """
    l2_coefficient = lam * len(unpack_layer_weights(initial_theta, X.shape[1])[1])
    theta, adam_first_moment, adam_second_moment = (
        initial_theta,
        np.zeros_like(initial_theta),
        np.zeros_like(initial_theta),
    )
    for adam_step in range(1, n_adam_steps + 1):
        gradient = loss_gradient(theta, X, r) + l2_coefficient * (theta - initial_theta)
        adam_first_moment = ADAM_BETAS[0] * adam_first_moment + (1 - ADAM_BETAS[0]) * gradient
        adam_second_moment = ADAM_BETAS[1] * adam_second_moment + (1 - ADAM_BETAS[1]) * gradient**2
        adam_denominator = np.sqrt(adam_second_moment / (1 - ADAM_BETAS[1] ** adam_step)) + ADAM_EPS
        learning_rate = lr * (n_adam_steps - adam_step + 1) / n_adam_steps
        theta = theta - learning_rate * adam_first_moment / (1 - ADAM_BETAS[0] ** adam_step) / adam_denominator
    return theta


def loss_gradient(theta: Values, X: ContextMatrix, r: Values) -> Values:
    """Return the gradient in the weights `theta` [q] of the squared error 1/2 sum (f(x) - r)^2, [q].

    f(x) is the network's output for a row x of X [n, d], r its reward [n]. The [n, q] gradients are not stored.
    """
    W_1, W_2 = unpack_layer_weights(theta, X.shape[1])
    preactivations = X @ W_1.T
    hidden_activations = np.maximum(preactivations, 0.0)
    scaled_reward_errors = math.sqrt(len(W_2)) * (math.sqrt(len(W_2)) * hidden_activations @ W_2 - r)
    first_layer_gradient = (scaled_reward_errors[:, None] * ((preactivations > 0) * W_2)).T @ X
    return np.concatenate([first_layer_gradient.ravel(), scaled_reward_errors @ hidden_activations])
