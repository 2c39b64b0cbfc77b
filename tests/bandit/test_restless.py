"""The hidden Markov bandit by hand, step by step, and on a world that switches."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.bandit import restless

P = np.array([[0.9, 0.1], [0.2, 0.8]])
THETA = np.array([[1.0], [0.2]])
X, R = np.array([[1.0]]), np.array([0.9])


def test_one_round_of_the_hidden_markov_bandit_by_hand() -> None:
    """pi = (1/2, 1/2), sigma = .2, r = .9: prior (.5 .9 + .5 .2, ...); likelihoods exp(-.01 / .08), exp(-.49 / .08)."""
    prior = np.array([0.5, 0.5]) @ P
    np.testing.assert_allclose(prior, [0.55, 0.45], rtol=1e-14)  # P pi would be (.5, .5)
    pi = restless.update_state_belief(prior, THETA, X, R, 0.2**2)
    np.testing.assert_allclose(pi, [0.99797603, 0.00202397], atol=5e-9)
    np.testing.assert_allclose(pi @ P, [0.89858322, 0.10141678], atol=5e-9)
    assert (pi @ P @ THETA).item() == pytest.approx(0.91886658, abs=5e-9)
    updated = restless.update_state_regressions(restless.initial_belief(1, 2, 1.0, None), pi, X, R)
    np.testing.assert_allclose(restless.reward_coefficients(updated)[:, 0], [0.44954415, 0.00181789], atol=5e-9)


def make_state(belief: list[float], counts: np.ndarray, theta: np.ndarray = THETA) -> restless.HiddenMarkov:
    """A belief with these theta_j, lam = 1; sigma^2 = .04 from ten errors."""
    V = np.ones((2, 1, 1))
    return restless.HiddenMarkov(np.array(belief), counts, V, theta.copy(), 0.4, 10, 0)


def test_learning_equals_the_steps_by_hand() -> None:
    """One step of learning, worked out by hand.

    Counts 8, 0, 1, 7 are P above: (8 + 1, 0 + 1) / 10, (1 + 1, 7 + 1) / 10. The error of the prediction, .9 - (.55 +
    .45 .2) = .26, enters sigma^2; the transition's share is pi_old[i] pi_new[j] P[i, j].
    """
    belief_before = make_state([0.5, 0.5], np.array([[8.0, 0.0], [1.0, 7.0]]))
    np.testing.assert_allclose(restless.transition_matrix(belief_before.transition_counts), P, rtol=1e-14)
    np.testing.assert_allclose(restless.predict_state_belief(belief_before), [0.55, 0.45], rtol=1e-14)
    np.testing.assert_allclose(restless.predict_rewards(belief_before, X), [0.64], rtol=1e-14)
    after = restless.add_rewards(belief_before, X, R)
    np.testing.assert_allclose(after.belief, [0.99797603, 0.00202397], atol=5e-9)
    a, b = after.belief
    expected = np.array([[a * 0.9, b * 0.1], [a * 0.2, b * 0.8]])
    np.testing.assert_allclose(
        after.transition_counts, belief_before.transition_counts + expected / expected.sum(), rtol=1e-12
    )
    np.testing.assert_allclose((after.squared_error_sum, after.n_rewards), (0.4 + 0.26**2, 11), rtol=1e-12)
    np.testing.assert_allclose(after.V[:, 0, 0], [1 + a, 1 + b], rtol=1e-12)
    np.testing.assert_allclose(after.b[:, 0], [1 + 0.9 * a, 0.2 + 0.9 * b], rtol=1e-12)


def test_the_noise_is_estimated_from_the_first_rewards() -> None:
    """Rewards 1, 2, 3: variance 2/3, whatever the predictions; .9 on the diagonal of P, for any number of states."""
    first = restless.add_rewards(restless.initial_belief(1, 2, 1.0, None), np.ones((3, 1)), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose((first.squared_error_sum, first.n_rewards), (2.0, 3), rtol=1e-14)
    for states in (2, 3, 5):
        start = restless.transition_matrix(restless.initial_belief(1, states, 1.0, None).transition_counts)
        expected = np.full((states, states), 0.1 / (states - 1))
        np.fill_diagonal(expected, 0.9)
        np.testing.assert_allclose(start, expected, rtol=1e-12)


def test_rounds_of_exploration_follow_the_schedule() -> None:
    """c = 2: fewer than 2 ln(t + 1) so far, in rounds 1 to 30."""
    explored: list[int] = []
    for t in range(1, 31):
        if restless.is_exploration_round(len(explored), t, 2.0):
            explored.append(t)
    assert explored == [1, 2, 3, 4, 7, 12, 20]
    assert not restless.is_exploration_round(0, 5, 0.0)


@pytest.mark.parametrize("reward", [1e6, -1e6, 1e11])
def test_an_implausible_reward_keeps_beliefs_finite(reward: float) -> None:
    """exp of it underflows in every state; its logarithms still compare."""
    belief_before = make_state([0.5, 0.5], np.zeros((2, 2)))
    after = restless.add_rewards(belief_before, X, np.array([reward]))
    assert np.isfinite(after.belief).all()
    assert after.belief.sum() == pytest.approx(1.0)
    assert after.belief[0 if reward > 0 else 1] == 1.0  # theta = 1 is nearer to a large reward
    later = restless.add_rewards(after, X, R)
    assert all(np.isfinite(part).all() for part in (later.belief, later.transition_counts, later.V, later.b))


def test_equal_states_stay_equal_so_a_run_starts_with_different_ones() -> None:
    equal_states = make_state([0.5, 0.5], np.zeros((2, 2)), np.ones((2, 1)))
    for reward in (0.3, 2.0, -1.0):
        equal_states = restless.add_rewards(equal_states, X, np.array([reward]))
        np.testing.assert_array_equal(equal_states.belief, [0.5, 0.5])
    theta = restless.reward_coefficients(restless.initial_belief(4, 2, 0.5, np.random.default_rng(0)))
    assert (np.abs(theta) > 0).all()
    assert (np.abs(theta) < restless.MAX_THETA_0).all()
    assert (theta[0] != theta[1]).all()


def test_the_bandit_follows_rewards_that_switch() -> None:
    """theta is (1, 0) or (0, 1) by turns of ten rounds.

    The belief says which, some rounds after the beginning, and a linear bandit could not: its theta would be (.5, .5).
    """
    rng = np.random.default_rng(3)
    belief_before = restless.initial_belief(2, 2, 1.0, rng)
    picks = []
    for t in range(200):
        theta = np.eye(2)[t // 10 % 2]
        if t >= 100 and t % 10 >= 2:
            picks.append(int(np.argmax(restless.predict_rewards(belief_before, np.eye(2)))) == t // 10 % 2)
        rows = rng.random((5, 2))
        belief_before = restless.add_rewards(belief_before, rows, rows @ theta + 0.05 * rng.normal(size=5))
    assert np.mean(picks) > 0.95
    assert restless.transition_matrix(belief_before.transition_counts).diagonal().min() > 0.7


def test_non_finite_rewards_are_not_learned_from() -> None:
    belief_before = make_state([1.0, 0.0], np.array([[8.0, 0.0], [1.0, 7.0]]))
    rows, rewards = np.array([[np.nan], [1.0], [1e300]]), np.array([1.0, np.nan, 1.0])
    after = restless.add_rewards(belief_before, rows, rewards)
    np.testing.assert_allclose(after.belief, [0.9, 0.1], rtol=1e-14)  # a round has gone by all the same
    np.testing.assert_array_equal(after.V, belief_before.V)
    np.testing.assert_array_equal(after.transition_counts, belief_before.transition_counts)
    assert np.isnan(restless.predict_rewards(belief_before, rows)).tolist() == [True, False, True]


def test_the_mean_and_deviation_over_states_by_hand() -> None:
    """pi P = (1/2, 1/2) over theta = 1 +- 1 and .2 +- 1: mean .6, variance 1 + .4^2."""
    belief_before = replace(make_state([0.5, 0.5], np.ones((2, 2))), n_explored_rounds=3)
    mean, sd = restless.coefficient_moments(belief_before)
    np.testing.assert_allclose([mean[0], sd[0]], [0.6, np.sqrt(1.16)], rtol=1e-12)
