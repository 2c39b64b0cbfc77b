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


def test_covariance_by_hand() -> None:
    """X'X + 1e-4 I."""
    found = gaussian.covariance(np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]]), 0.01)
    np.testing.assert_allclose(found, [[1.0001, 0, 0.6], [0, 1.0001, 0.8], [0.6, 0.8, 1.0001]], rtol=1e-12)


def test_conditioning_by_hand() -> None:
    """Given 1, of variance 1.2: .9^2 / 1.2 = .675, .9 * .2 / 1.2 = .15, .2^2 / 1.2 = .03333."""
    sigma = np.array([[1, 0.9, 0.1], [0.9, 1.2, 0.2], [0.1, 0.2, 0.8]])
    expected = [[0.325, 0.0, -0.05], [0.0, 0.0, 0.0], [-0.05, 0.0, 0.766667]]
    np.testing.assert_allclose(gaussian.condition(sigma, 1), expected, atol=5e-7)


def test_conditioning_is_what_scikit_learn_calls_a_posterior() -> None:
    """Clients 2 and 5 known, one after the other, against a regressor on their feature vectors."""
    sigma = gaussian.covariance(X, 0.3)
    for k in (2, 5):
        sigma = gaussian.condition(sigma, k)
    model = GaussianProcessRegressor(DotProduct(0.0, "fixed"), alpha=0.3**2, optimizer=None)
    model.fit(X.T[[2, 5]], [0.0, 0.0])
    others = [0, 1, 3, 4, 6]
    _, expected = model.predict(X.T[others], return_cov=True)
    np.testing.assert_allclose(sigma[np.ix_(others, others)], expected + 0.09 * np.eye(5), atol=1e-7)


def test_a_weighted_mean_by_hand() -> None:
    """(.95 * -.5 - .3) / 1.95 and (.95 * -.2 - .1) / 1.95; what is missing doesn't count; never there is 0."""
    rows, weights = np.array([[-0.5, -0.2], [-0.3, -0.1]]), np.array([0.95, 1.0])
    np.testing.assert_allclose(gaussian.weighted_mean(rows, weights), [-0.3974359, -0.14871795], atol=5e-9)
    partly = np.array([[1.0, NAN, NAN], [2.0, 5.0, NAN]])
    np.testing.assert_allclose(gaussian.weighted_mean(partly, weights), [2.95 / 1.95, 5.0, 0.0], rtol=1e-12)


def reference(Y: np.ndarray) -> float:
    sigma, total = X.T @ X + 0.3**2 * np.eye(7), 0.0
    for row, weight in zip(Y, WEIGHTS, strict=True):
        known = np.flatnonzero(~np.isnan(row))
        if len(known):
            total -= weight * stats.multivariate_normal(MU[known], sigma[np.ix_(known, known)]).logpdf(row[known])
    return total


@pytest.mark.parametrize("missing", [[], [(0, 1), (0, 4), (2, 1), (2, 4), (3, 0)], [(1, k) for k in range(7)]])
def test_the_likelihood_is_scipys(missing: list[tuple[int, int]]) -> None:
    """Where clients are missing, the likelihood of the others."""
    partly = Y.copy()
    for at in missing:
        partly[at] = NAN
    assert gaussian.loss_and_slope(X, partly, MU, WEIGHTS, 0.3)[0] == pytest.approx(reference(partly), rel=1e-10)


def test_the_slope_is_that_of_differences() -> None:
    slope = gaussian.loss_and_slope(X, Y, MU, WEIGHTS, 0.3)[1]
    for at in [(0, 0), (2, 6), (1, 3)]:
        step = np.zeros_like(X)
        step[at] = 1e-6
        ends = [gaussian.loss_and_slope(X + s * step, Y, MU, WEIGHTS, 0.3)[0] for s in (1, -1)]
        assert slope[at] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def test_a_fit_finds_probabilistic_pca() -> None:
    """Tipping and Bishop (1999), Eq. 7: X = (Lambda - s^2)^1/2 U' of the d largest eigenvalues of the covariance."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((40, 2)) @ np.array([[1.0, 0.5, 0, 0.5], [0, 0.5, 0.5, -0.5]])
    rows += 0.3 * rng.standard_normal(rows.shape)
    weights, mean = np.ones(40), np.zeros(4)
    values, vectors = np.linalg.eigh(rows.T @ rows / 40)
    best = np.sqrt(values[2:] - 0.3**2)[:, None] * vectors[:, 2:].T
    fit = gaussian.fit(rng.standard_normal((2, 4)), rows, mean, weights, 0.3, 1000)
    least, found = (gaussian.loss_and_slope(at, rows, mean, weights, 0.3)[0] for at in (best, fit))
    assert least - 1e-9 < found < least + 0.01
    np.testing.assert_allclose(fit.T @ fit, best.T @ best, atol=0.05)
    assert np.abs(gaussian.loss_and_slope(best, rows, mean, weights, 0.3)[1]).max() < 1e-9


def test_nothing_to_learn_leaves_it_as_it_was() -> None:
    assert gaussian.fit(X, np.full((2, 7), NAN), MU, np.ones(2), 0.3, 10) is X
    assert gaussian.fit(X, np.full((1, 7), 1e300), MU, np.ones(1), 0.3, 3) is X
    np.testing.assert_array_equal(gaussian.fit(X, Y, MU, WEIGHTS, 0.3, 0), X)


def test_the_smooth_covariance_by_hand() -> None:
    """f = 2, l = .5: 4 exp(-d^2), d^2 = 1, 4, 5 between (0, 0), (1, 0), (0, 2); and .1^2 more on the diagonal."""
    found = gaussian.smooth_covariance(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]), 2.0, 0.5, 0.1)
    a, b, c = 4 * np.exp(-np.array([1.0, 4.0, 5.0]))
    np.testing.assert_allclose(found, [[4.01, a, b], [a, 4.01, c], [b, c, 4.01]], rtol=1e-12)


def test_the_smooth_covariance_is_scikit_learns() -> None:
    """Its RBF has the length sqrt(l)."""
    found = gaussian.smooth_covariance(X, 1.5, 0.7, 0.3)
    np.testing.assert_allclose(found, 2.25 * RBF(np.sqrt(0.7))(X.T) + 0.09 * np.eye(7), atol=1e-12)


@pytest.mark.parametrize("missing", [[], [(0, 1), (0, 4), (2, 1), (2, 4), (3, 0)], [(1, k) for k in range(7)]])
def test_the_smooth_likelihood_is_scipys(missing: list[tuple[int, int]]) -> None:
    partly, sigma, total = Y.copy(), gaussian.smooth_covariance(X, 1.5, 0.7, 0.3), 0.0
    for at in missing:
        partly[at] = NAN
    for row, weight in zip(partly, WEIGHTS, strict=True):
        known = np.flatnonzero(~np.isnan(row))
        if len(known):
            total -= weight * stats.multivariate_normal(MU[known], sigma[np.ix_(known, known)]).logpdf(row[known])
    found = gaussian.smooth_loss_and_slope(X, 1.5, partly, MU, WEIGHTS, 0.3, 0.7)[0]
    assert found == pytest.approx(total, rel=1e-10)


def test_the_smooth_slopes_are_those_of_differences() -> None:
    def loss(X: np.ndarray, f: float) -> float:
        return gaussian.smooth_loss_and_slope(X, f, Y, MU, WEIGHTS, 0.3, 0.7)[0]

    _, in_X, in_f = gaussian.smooth_loss_and_slope(X, 1.5, Y, MU, WEIGHTS, 0.3, 0.7)
    for at in [(0, 0), (2, 6), (1, 3)]:
        step = np.zeros_like(X)
        step[at] = 1e-6
        assert in_X[at] == pytest.approx((loss(X + step, 1.5) - loss(X - step, 1.5)) / 2e-6, rel=1e-5)
    assert in_f == pytest.approx((loss(X, 1.5 + 1e-6) - loss(X, 1.5 - 1e-6)) / 2e-6, rel=1e-6)


def test_a_smooth_fit_lowers_the_loss_and_never_returns_nonsense() -> None:
    before = gaussian.smooth_loss_and_slope(X, 1.0, Y, MU, WEIGHTS, 0.3, 1.0)[0]
    end, f = gaussian.fit_smooth(X, 1.0, Y, MU, WEIGHTS, 0.3, 1.0, 50)
    assert gaussian.smooth_loss_and_slope(end, f, Y, MU, WEIGHTS, 0.3, 1.0)[0] < before - 1
    huge = np.full((1, 7), 1e300)
    assert gaussian.fit_smooth(X, 1.0, huge, MU, np.ones(1), 0.3, 1.0, 3) == (X, 1.0)
    assert gaussian.fit_smooth(X, 1.0, np.full((2, 7), NAN), MU, np.ones(2), 0.3, 1.0, 10) == (X, 1.0)


def test_a_fit_is_torchs_adam_at_a_rate_that_falls_in_the_second_half() -> None:
    """At a constant rate, rounding grew from fit to fit until it chose other clients."""
    X, weights = np.random.default_rng(3).standard_normal((2, 7)), np.ones(len(Y))
    features = torch.tensor(X, requires_grad=True)
    adam = torch.optim.Adam([features], lr=gaussian.RATE)
    falling = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, 2 * (1 - step / 10)))
    for _ in range(10):
        features.grad = torch.from_numpy(gaussian.loss_and_slope(features.detach().numpy(), Y, MU, weights, 0.3)[1])
        adam.step()
        falling.step()
    fit = gaussian.fit(X, Y, MU, weights, 0.3, 10)
    assert fit.dtype == np.float64
    np.testing.assert_allclose(fit, features.detach().numpy(), rtol=1e-12)
