"""The network by hand, against torch's gradients and Adam, and LinUCB as its linear case."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from fedcohort.bandit import neural

RNG = np.random.default_rng(0)


def make_network(n: int = 6, d: int = 3, pairs: int = 4) -> tuple[neural.NetworkBelief, np.ndarray]:
    return neural.initial_network(d, pairs, 1.0, RNG), RNG.normal(size=(n, d))


def test_the_linear_case_equals_linucb() -> None:
    """f = w'x, h = 1: the gradient is x, Z = I + X'X = [[3, 1], [1, 2]]; with w = (.4, .3) f + bonus is LinUCB's."""
    X, contexts = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    Z, f = np.eye(2) + X.T @ X, contexts @ [0.4, 0.3]
    np.testing.assert_allclose(
        f + neural.exploration_bonus(Z, contexts, 1), [1.03245553, 1.47459667, 2.14919334], atol=5e-9
    )
    diagonal = f + neural.exploration_bonus(np.diag(Z).copy(), contexts, 1)
    np.testing.assert_allclose(diagonal, [0.97735027, 1.61287093, 2.01421356], atol=5e-9)


def test_the_score_of_two_hidden_units_by_hand() -> None:
    """W_1 x = (.5, .5): f = sqrt 2 (.5 - .25); W_2 gets sqrt 2 (.5, .5), W_1's rows sqrt 2 W_2j x; g'g / h = 2.0625."""
    theta, x = np.array([1.0, -1.0, 0.0, 1.0, 1.0, -0.5]), np.array([[1.0, 0.5]])
    np.testing.assert_allclose(neural.network_outputs(theta, x), [0.35355339], atol=5e-9)
    g = neural.output_gradients(theta, x)
    expected = [1.41421356, 0.70710678, -0.70710678, -0.35355339, 0.70710678, 0.70710678]
    np.testing.assert_allclose(g[0], expected, atol=5e-9)
    assert (g @ g.T / 2).item() == pytest.approx(2.0625, rel=1e-14)
    assert neural.exploration_bonus(np.eye(6), g, 2)[0] == pytest.approx(1.43614066, abs=5e-9)


def test_a_hidden_unit_at_zero_has_gradient_zero() -> None:
    """x = (1, 1) is orthogonal to W_1 = [(1, -1), (1, 0)]; the second unit is positive: its part is sqrt 2 W_2 x."""
    theta = np.array([1.0, -1.0, 1.0, 0.0, 3.0, 5.0])
    gradient = neural.output_gradients(theta, np.array([[1.0, 1.0]]))[0]
    np.testing.assert_allclose(gradient, np.sqrt(2) * np.array([0, 0, 5, 5, 0, 1]))


def test_contexts_before_the_first_are_standardised_to_zero_without_a_warning() -> None:
    net, contexts = make_network()
    with np.errstate(invalid="raise", divide="raise"):
        assert (neural.standardise_contexts(net, contexts) == 0).all()


def test_the_prediction_before_the_first_reward_is_zero() -> None:
    """The copies cancel exactly, and there is something to find out all the same."""
    net, X = make_network(pairs=16)
    assert len(net.theta) == 32 * 4
    np.testing.assert_array_equal(neural.network_outputs(net.theta, X), 0.0)
    mean, width, _ = neural.predict_with_bonus(net, X)
    np.testing.assert_array_equal(mean, 0.0)
    assert (width > 0).all()


def test_weights_have_variance_four_over_h() -> None:
    theta = neural.initial_network(9, 500, 1.0, np.random.default_rng(1)).theta
    assert theta.var() == pytest.approx(4 / 1000, rel=0.06)  # 5000 different ones: 3 sd of the estimate is 6 %


def test_dead_units_have_a_bonus_of_zero() -> None:
    """W_1 = -1 for x > 0: no unit answers, the gradient is 0."""
    theta, x = np.array([-1.0, -1.0, 1.0, -1.0]), np.array([[2.0], [3.0]])
    np.testing.assert_array_equal(neural.output_gradients(theta, x), 0.0)
    np.testing.assert_array_equal(neural.exploration_bonus(np.eye(4), neural.output_gradients(theta, x), 2), 0.0)


def torch_output(theta: torch.Tensor, X: torch.Tensor, h: int) -> torch.Tensor:
    d = X.shape[1]
    output: torch.Tensor = h**0.5 * torch.relu(X @ theta[: h * d].view(h, d).T) @ theta[h * d :]
    return output


def test_gradients_agree_with_torch() -> None:
    net, X = make_network()
    theta = net.theta + 0.1 * RNG.normal(size=net.theta.shape)
    output = partial(torch_output, X=torch.tensor(X), h=8)
    jacobian = torch.autograd.functional.jacobian(output, torch.tensor(theta))
    np.testing.assert_allclose(neural.output_gradients(theta, X), jacobian.numpy(), rtol=1e-10, atol=1e-12)
    r = RNG.normal(size=len(X))
    error = neural.network_outputs(theta, X) - r
    np.testing.assert_allclose(
        neural.loss_gradient(theta, X, r), error @ neural.output_gradients(theta, X), rtol=1e-10, atol=1e-12
    )


def test_fitting_equals_torchs_adam_with_a_decaying_rate() -> None:
    """1/2 sum (f - r)^2 + h lam / 2 |theta - theta_0|^2, h = 8, lam = .3, 50 full-batch steps from theta_0."""
    net, X = make_network()
    r = RNG.normal(size=len(X))
    theta, origin = torch.tensor(net.initial_theta, requires_grad=True), torch.tensor(net.initial_theta)
    adam = torch.optim.Adam([theta], lr=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / 50)
    for _ in range(50):
        adam.zero_grad()
        error = torch_output(theta, torch.tensor(X), 8) - torch.tensor(r)
        (0.5 * (error**2).sum() + 0.5 * 8 * 0.3 * ((theta - origin) ** 2).sum()).backward()
        adam.step()
        schedule.step()
    weights = neural.fit_weights(net.initial_theta, X, r, 0.3, 50, 0.02)
    np.testing.assert_allclose(weights, theta.detach().numpy(), rtol=1e-8, atol=1e-10)


def test_rounding_errors_do_not_grow_over_rounds() -> None:
    """Losses that differ by 1e-7 once gave scores that differed by their own spread after ten rounds of learning."""
    rng = np.random.default_rng(0)
    exact = rounded = neural.initial_network(4, 16, 1.0, np.random.default_rng(1))
    for _ in range(15):
        X, r = np.abs(rng.normal(1.0, 0.3, (20, 4))), np.abs(rng.normal(1.0, 0.5, 20))
        perturbed = X * (1 + 1e-7 * rng.standard_normal(X.shape))
        (a, _, exact), (b, _, rounded) = (
            neural.predict_with_bonus(exact, X),
            neural.predict_with_bonus(rounded, perturbed),
        )
        exact, rounded = (
            neural.add_rewards_and_fit(exact, X, r, 1.0, 100, 0.01),
            neural.add_rewards_and_fit(rounded, perturbed, r, 1.0, 100, 0.01),
        )
    assert a.dtype == b.dtype == np.float64
    assert np.abs(a - b).max() < 1e-4 * a.std()


def test_rounding_errors_of_a_constant_feature_are_ignored() -> None:
    """Losses come in single precision: 1 and 1 + 6e-8 are one value, and 1.001 is another."""
    net, X = make_network()
    X[:, 2] = np.where(np.arange(len(X)) % 2, 1.0, 1.0 + 6e-8)
    X[:, 1] = np.where(np.arange(len(X)) % 2, 1.0, 1.001)
    rows = neural.standardise_contexts(neural.add_to_context_moments(net, X), X)
    np.testing.assert_array_equal(rows[:, 2], 0.0)
    np.testing.assert_allclose(np.abs(rows[:, 1]), 1.0, rtol=1e-6)


def test_contexts_are_standardised_over_all_scored_clients() -> None:
    """Two batches against numpy over both; a constant feature becomes 0."""
    net, (a, b) = make_network()[0], (RNG.normal(3.0, 2.0, (5, 3)), RNG.normal(-1.0, 1.0, (7, 3)))
    a[:, 2] = b[:, 2] = 0.1
    belief = neural.add_to_context_moments(neural.add_to_context_moments(net, a), b)
    all_contexts = np.concatenate([a, b])
    expected = (all_contexts[:, :2] - all_contexts[:, :2].mean(axis=0)) / all_contexts[:, :2].std(axis=0)
    standardised = neural.standardise_contexts(belief, all_contexts)
    np.testing.assert_allclose(standardised[:, :2], expected, rtol=1e-10)
    np.testing.assert_array_equal(standardised[:, 2], 0.0)


def test_contexts_of_any_scale_are_standardised_equally() -> None:
    """From the first one on: a mean that started anywhere but at 0 would lose what is small against that."""
    net, X = make_network()
    small = neural.add_to_context_moments(net, 1e-25 * X)
    np.testing.assert_allclose(
        neural.standardise_contexts(small, 1e-25 * X),
        neural.standardise_contexts(neural.add_to_context_moments(net, X), X),
    )


def test_a_selection_reduces_the_uncertainty() -> None:
    """Z grows by g g' / h of the cohort, full or diagonal."""
    net, X = make_network()
    net = neural.predict_with_bonus(net, X)[2]
    after = neural.add_selected_gradients(net, X[:2])
    G = neural.output_gradients(net.theta, neural.standardise_contexts(net, X[:2]))
    np.testing.assert_allclose(after.Z, np.eye(32) + G.T @ G / 8, rtol=1e-12)
    assert (neural.predict_with_bonus(after, X)[1][:2] < neural.predict_with_bonus(net, X)[1][:2]).all()
    slim = neural.add_selected_gradients(replace(net, Z=np.ones(32)), X[:2])
    np.testing.assert_allclose(slim.Z, np.diag(after.Z), rtol=1e-12)


def test_long_parameter_vectors_use_a_diagonal_matrix() -> None:
    """h (d + 1) = 512 is full still."""
    assert neural.initial_network(3, 64, 2.0, RNG).Z.shape == (512, 512)
    belief = neural.initial_network(3, 65, 2.0, RNG)
    np.testing.assert_array_equal(belief.Z, np.full(520, 2.0))
    assert np.isfinite(neural.predict_with_bonus(belief, RNG.normal(size=(4, 3)))[1]).all()


def test_a_nonlinear_reward_is_learned() -> None:
    """r = |x|, which no linear reward is: after some rounds the ends are expected to pay more than the middle."""
    net = neural.initial_network(1, 16, 0.01, np.random.default_rng(2))
    X = np.linspace(-1, 1, 9)[:, None]
    net = neural.predict_with_bonus(net, X)[2]
    for _ in range(5):
        net = neural.add_rewards_and_fit(net, X, np.abs(X[:, 0]), 0.01, 100, 0.01)
    f = neural.predict_with_bonus(net, X)[0]
    assert min(f[0], f[-1]) > 2 * max(f[4], 0.0)
    np.testing.assert_allclose(f, np.abs(X[:, 0]), atol=0.25)


def test_non_finite_rows_are_left_out() -> None:
    net, X = make_network()
    X[1, 0], X[2, 1] = np.nan, 1e300
    mean, width, net = neural.predict_with_bonus(net, X)
    assert np.isnan(mean).tolist() == np.isnan(width).tolist() == [False, True, True, False, False, False]
    assert net.n_scored == 4
    r = np.ones(6)
    r[3] = np.inf
    after = neural.add_rewards_and_fit(neural.add_selected_gradients(net, X), X, r, 1.0, 3, 0.01)
    assert len(after.r) == len(after.X) == 3
    assert np.isfinite(after.Z).all()
    assert np.isfinite(after.theta).all()


def test_the_newest_rewards_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neural, "MAX_FITTED_REWARDS", 4)
    net, X = make_network()
    for rewards in ([1.0, 2, 3], [4.0, 5, 6]):
        net = neural.add_rewards_and_fit(net, X[:3], np.array(rewards), 1.0, 1, 0.01)
    assert net.r.tolist() == [3, 4, 5, 6]
    assert len(net.X) == 4
