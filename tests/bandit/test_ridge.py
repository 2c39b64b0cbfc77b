"""The ridge posterior against closed forms, numpy and scipy."""

import numpy as np
import pytest
from scipy import stats

from fedcohort.bandit import ridge

# lam = 1, rows (1, 0) and (1, 1) with rewards 1/2 and 1:  V = I + [[2, 1], [1, 1]],  b = (1/2 + 1, 1),  det V = 5
SMALL = ridge.add_rewards(ridge.prior_belief(2, 1.0), np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 1.0]))
INVERSE = np.array([[0.4, -0.2], [-0.2, 0.6]])


def test_the_posterior_of_two_rewards_by_hand() -> None:
    np.testing.assert_allclose(SMALL.V, [[3, 1], [1, 2]], rtol=1e-15)
    np.testing.assert_allclose(SMALL.b, [1.5, 1.0], rtol=1e-15)
    np.testing.assert_allclose(ridge.posterior_mean(SMALL), [0.4, 0.3], rtol=1e-14)  # (2*1.5 - 1, -1.5 + 3*1) / 5
    np.testing.assert_allclose(ridge.posterior_deviation(SMALL), np.sqrt([0.4, 0.6]), rtol=1e-14)


def test_a_draw_from_the_posterior_by_hand() -> None:
    """C = [[sqrt 3, 0], [1/sqrt 3, sqrt(5/3)]]; theta = theta_hat + gamma C^-T (1, -1), scores of three contexts."""
    theta = ridge.posterior_draw(SMALL, ridge.exploration_width(0, 2, 2, 1.0, 0.05), np.array([1.0, -1.0]))
    np.testing.assert_allclose(theta, [3.28076196, -2.37061321], atol=1e-8)
    scores = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]) @ theta
    np.testing.assert_allclose(scores, [3.28076196, 0.91014875, -4.74122642], atol=1e-8)


def test_draws_have_covariance_gamma_squared_times_the_inverse() -> None:
    """z -> theta is affine, theta = theta_hat + M z, so the covariance is M M' exactly; M's columns answer unit z."""
    gamma = ridge.exploration_width(0, 2, 2, 1.0, 0.05)
    M = np.stack([ridge.posterior_draw(SMALL, gamma, z) - ridge.posterior_mean(SMALL) for z in np.eye(2)], axis=1)
    np.testing.assert_allclose(M @ M.T, gamma**2 * INVERSE, rtol=1e-12)
    np.testing.assert_allclose(np.diag(M @ M.T), [4.75478, 7.13217], atol=5e-6)


def test_draws_pass_a_test_for_the_posterior() -> None:
    """Mahalanobis distances of draws are chi-square with d degrees of freedom."""
    z = np.random.default_rng(0).standard_normal((4000, 2))
    draws = np.array([ridge.posterior_draw(SMALL, 2.0, row) for row in z]) - ridge.posterior_mean(SMALL)
    distances = np.einsum("ij,jk,ik->i", draws, np.linalg.inv(4.0 * INVERSE), draws)
    assert stats.kstest(distances, stats.chi2(2).cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("t", "n", "d", "gamma"),
    [
        (0, 2, 2, 3.447747),  # 1 + sqrt(2 ln 20)
        (0, 50, 4, 4.461637),  # 1 + sqrt(4 ln 20)
        (1, 50, 4, 6.264051),  # 1 + sqrt(4 ln 1020)
        (100, 50, 4, 7.786199),
        (100, 50, 3, 6.877021),
        (100, 3550, 4, 8.943704),
    ],
)
def test_the_exploration_width_by_hand(t: int, n: int, d: int, gamma: float) -> None:
    assert ridge.exploration_width(t, n, d, 1.0, 0.05) == pytest.approx(gamma, abs=1e-6)


def test_ridge_regression_equals_least_squares_with_extra_rows() -> None:
    """Minimising |r - X theta|^2 + lam |theta|^2 is least squares with rows sqrt(lam) I of reward zero below."""
    rng = np.random.default_rng(1)
    X, r, lam = rng.normal(size=(30, 4)), rng.normal(size=30), 0.7
    theta = np.linalg.lstsq(np.vstack([X, np.sqrt(lam) * np.eye(4)]), np.r_[r, np.zeros(4)], rcond=None)[0]
    in_one_call = ridge.add_rewards(ridge.prior_belief(4, lam), X, r)
    in_two_calls = ridge.add_rewards(ridge.add_rewards(ridge.prior_belief(4, lam), X[:7], r[:7]), X[7:], r[7:])
    np.testing.assert_allclose(ridge.posterior_mean(in_one_call), theta, rtol=1e-10)
    np.testing.assert_allclose(ridge.posterior_mean(in_two_calls), theta, rtol=1e-10)
    np.testing.assert_allclose(
        ridge.posterior_deviation(in_one_call) ** 2, np.diag(np.linalg.inv(X.T @ X + lam * np.eye(4)))
    )


def test_non_finite_rows_are_not_learned_from() -> None:
    X = np.array([[np.nan, 0.0], [1.0, 0.0], [np.inf, 1.0], [1e200, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    r = np.array([1.0, 0.5, 1.0, 1.0, 1.0, np.nan, -np.inf])
    belief = ridge.add_rewards(ridge.prior_belief(2, 1.0), X, r)
    np.testing.assert_array_equal(belief.V, SMALL.V)
    np.testing.assert_array_equal(belief.b, SMALL.b)


def test_values_of_1e12_or_more_are_ignored() -> None:
    below_limit, limit = np.nextafter(1e12, 0), 1e12
    X, r = (
        np.array([[below_limit, -below_limit], [1.0, limit], [-limit, 0.0], [1.0, 1.0]]),
        np.array([-below_limit, 0.0, 0.0, limit]),
    )
    assert ridge.find_valid_rows(X).tolist() == [True, False, False, True]
    assert ridge.find_valid_rows(X, r).tolist() == [True, False, False, False]


def test_collinear_features_give_finite_results() -> None:
    """1e9 (1, 1) makes V = 1e18 [[1, 1], [1, 1]] + I, singular in float64: numpy alone refuses it."""
    belief = ridge.add_rewards(ridge.prior_belief(2, 1.0), np.full((3, 2), 1e9), np.ones(3))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(belief.V)
    assert np.isfinite(ridge.posterior_draw(belief, 1.0, np.ones(2))).all()
    assert ridge.posterior_mean(belief).sum() == pytest.approx(1e-9, rel=1e-6)  # fits x'theta = 1
