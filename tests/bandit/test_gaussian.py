"""The Gaussian process against scipy, scikit-learn, differences and probabilistic PCA."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct

from fedcohort.bandit import gaussian

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 7))
Y = RNG.standard_normal((4, 7))
MU = RNG.standard_normal(7)
WEIGHTS = 0.9 ** np.arange(4.0)[::-1]
NAN = float("nan")
LINEAR, SMOOTH = gaussian.LinearKernel(0.3), gaussian.SquaredExponentialKernel(0.3, 0.7)


def observe(rows: np.ndarray, weights: np.ndarray = WEIGHTS) -> gaussian.Observations:
    return gaussian.Observations(rows, MU, weights)


def loss_and_gradients(
    kernel: gaussian.Kernel, features: np.ndarray, f: float, data: gaussian.Observations
) -> tuple[float, np.ndarray, float]:
    X, scale = torch.tensor(features, requires_grad=True), torch.tensor(f, dtype=torch.float64, requires_grad=True)
    total = kernel.loss(X, scale, data.group_observations())
    grad_features, grad_scale = torch.autograd.grad(total, (X, scale), allow_unused=True, materialize_grads=True)
    return float(total.detach()), grad_features.numpy(), float(grad_scale)


def loss(kernel: gaussian.Kernel, features: np.ndarray, f: float, rows: np.ndarray = Y) -> float:
    return loss_and_gradients(kernel, features, f, observe(rows))[0]


def test_the_linear_covariance_by_hand() -> None:
    """X'X + 1e-4 I."""
    covariance = gaussian.LinearKernel(0.01).covariance(np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]]), 1.0)
    np.testing.assert_allclose(covariance, [[1.0001, 0, 0.6], [0, 1.0001, 0.8], [0.6, 0.8, 1.0001]], rtol=1e-12)


def test_conditioning_a_covariance_by_hand() -> None:
    """Given 1, of variance 1.2: .9^2 / 1.2 = .675, .9 * .2 / 1.2 = .15, .2^2 / 1.2 = .03333."""
    sigma = np.array([[1, 0.9, 0.1], [0.9, 1.2, 0.2], [0.1, 0.2, 0.8]])
    expected = [[0.325, 0.0, -0.05], [0.0, 0.0, 0.0], [-0.05, 0.0, 0.766667]]
    np.testing.assert_allclose(gaussian.condition_covariance(sigma, 1), expected, atol=5e-7)


def test_conditioning_agrees_with_scikit_learns_posterior() -> None:
    """Clients 2 and 5 known, one after the other, against a regressor on their feature vectors."""
    sigma = LINEAR.covariance(X, 1.0)
    for k in (2, 5):
        sigma = gaussian.condition_covariance(sigma, k)
    model = GaussianProcessRegressor(DotProduct(0.0, "fixed"), alpha=0.3**2, optimizer=None)
    model.fit(X.T[[2, 5]], [0.0, 0.0])
    other_arms = [0, 1, 3, 4, 6]
    _, expected = model.predict(X.T[other_arms], return_cov=True)
    np.testing.assert_allclose(sigma[np.ix_(other_arms, other_arms)], expected + 0.09 * np.eye(5), atol=1e-7)


def test_a_weighted_mean_by_hand() -> None:
    """(.95 * -.5 - .3) / 1.95 and (.95 * -.2 - .1) / 1.95; what is missing doesn't count; never there is 0."""
    rows, weights = np.array([[-0.5, -0.2], [-0.3, -0.1]]), np.array([0.95, 1.0])
    np.testing.assert_allclose(gaussian.weighted_mean(rows, weights), [-0.3974359, -0.14871795], atol=5e-9)
    incomplete = np.array([[1.0, NAN, NAN], [2.0, 5.0, NAN]])
    np.testing.assert_allclose(gaussian.weighted_mean(incomplete, weights), [2.95 / 1.95, 5.0, 0.0], rtol=1e-12)


@pytest.mark.parametrize("missing", [[], [(0, 1), (0, 4), (2, 1), (2, 4), (3, 0)], [(1, k) for k in range(7)]])
@pytest.mark.parametrize("kernel", [LINEAR, SMOOTH])
def test_the_likelihood_agrees_with_scipy(kernel: gaussian.Kernel, missing: list[tuple[int, int]]) -> None:
    """Where clients are missing, the likelihood of the others."""
    incomplete, sigma, total = Y.copy(), kernel.covariance(X, 1.5), 0.0
    for cell in missing:
        incomplete[cell] = NAN
    for row, weight in zip(incomplete, WEIGHTS, strict=True):
        k = np.flatnonzero(~np.isnan(row))
        if len(k):
            total -= weight * stats.multivariate_normal(MU[k], sigma[np.ix_(k, k)]).logpdf(row[k])
    assert loss(kernel, X, 1.5, incomplete) == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("kernel", [LINEAR, SMOOTH])
def test_the_gradient_agrees_with_finite_differences(kernel: gaussian.Kernel) -> None:
    _, grad_X, grad_scale = loss_and_gradients(kernel, X, 1.5, observe(Y))
    for cell in [(0, 0), (2, 6), (1, 3)]:
        step = np.zeros_like(X)
        step[cell] = 1e-6
        difference = loss(kernel, X + step, 1.5) - loss(kernel, X - step, 1.5)
        assert grad_X[cell] == pytest.approx(difference / 2e-6, rel=1e-5)
    assert grad_scale == pytest.approx((loss(kernel, X, 1.5 + 1e-6) - loss(kernel, X, 1.5 - 1e-6)) / 2e-6, rel=1e-6)


def test_the_fitted_features_agree_with_probabilistic_pca() -> None:
    """Tipping and Bishop (1999), Eq. 7: X = (Lambda - s^2)^1/2 U' of the d largest eigenvalues of the covariance."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((40, 2)) @ np.array([[1.0, 0.5, 0, 0.5], [0, 0.5, 0.5, -0.5]])
    rows += 0.3 * rng.standard_normal(rows.shape)
    weights, mean = np.ones(40), np.zeros(4)
    values, vectors = np.linalg.eigh(rows.T @ rows / 40)
    best = np.sqrt(values[2:] - 0.3**2)[:, None] * vectors[:, 2:].T
    data = gaussian.Observations(rows, mean, weights)
    fit, _ = gaussian.fit_gaussian_process(LINEAR, rng.standard_normal((2, 4)), 1.0, data, 1000)
    least, fitted = (loss_and_gradients(LINEAR, features, 1.0, data)[0] for features in (best, fit))
    assert least - 1e-9 < fitted < least + 0.01
    np.testing.assert_allclose(fit.T @ fit, best.T @ best, atol=0.05)
    assert np.abs(loss_and_gradients(LINEAR, best, 1.0, data)[1]).max() < 1e-9


@pytest.mark.parametrize("kernel", [LINEAR, SMOOTH])
def test_without_data_the_parameters_are_unchanged(kernel: gaussian.Kernel) -> None:
    assert gaussian.fit_gaussian_process(kernel, X, 1.5, observe(np.full((2, 7), NAN), np.ones(2)), 10) == (X, 1.5)
    assert gaussian.fit_gaussian_process(kernel, X, 1.5, observe(np.full((1, 7), 1e300), np.ones(1)), 3) == (X, 1.5)
    np.testing.assert_array_equal(gaussian.fit_gaussian_process(kernel, X, 1.5, observe(Y), 0)[0], X)


def test_the_smooth_covariance_by_hand() -> None:
    """f = 2, l = .5: 4 exp(-d^2), d^2 = 1, 4, 5 between (0, 0), (1, 0), (0, 2); and .1^2 more on the diagonal."""
    kernel = gaussian.SquaredExponentialKernel(0.1, 0.5)
    covariance = kernel.covariance(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), 2.0)
    a, b, c = 4 * np.exp(-np.array([1.0, 4.0, 5.0]))
    np.testing.assert_allclose(covariance, [[4.01, a, b], [a, 4.01, c], [b, c, 4.01]], rtol=1e-12)


def test_the_smooth_covariance_agrees_with_scikit_learn() -> None:
    """Its RBF has the length sqrt(l)."""
    covariance = SMOOTH.covariance(X, 1.5)
    np.testing.assert_allclose(covariance, 2.25 * RBF(np.sqrt(0.7))(X.T) + 0.09 * np.eye(7), atol=1e-12)


def test_a_smooth_fit_lowers_the_loss() -> None:
    end, f = gaussian.fit_gaussian_process(SMOOTH, X, 1.0, observe(Y), 50)
    assert loss(SMOOTH, end, f) < loss(SMOOTH, X, 1.0) - 1


def test_a_fit_equals_torchs_adam_with_a_decaying_rate() -> None:
    """At a constant rate, rounding grew from fit to fit until it chose other clients."""
    X, weights = np.random.default_rng(3).standard_normal((2, 7)), np.ones(len(Y))
    features = torch.tensor(X, requires_grad=True)
    adam = torch.optim.Adam([features], lr=gaussian.FIRST_LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, 2 * (1 - step / 10)))
    for _ in range(10):
        slopes = loss_and_gradients(LINEAR, features.detach().numpy(), 1.0, observe(Y, weights))
        features.grad = torch.from_numpy(slopes[1])
        adam.step()
        schedule.step()
    fit, _ = gaussian.fit_gaussian_process(LINEAR, X, 1.0, observe(Y, weights), 10)
    assert fit.dtype == np.float64
    np.testing.assert_allclose(fit, features.detach().numpy(), rtol=1e-12)
