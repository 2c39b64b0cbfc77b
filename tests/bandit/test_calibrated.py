"""The estimated noise of a Bayesian linear regression, against closed forms and simulated noise."""

import numpy as np
import pytest

from fedcohort.bandit import calibrated, ridge
from fedcohort.bandit.calibrated import NoisyRidge
from fedcohort.bandit.contextual import CalibratedThompson, Thompson

# lam = 1, rows (1, 0) and (1, 1) with rewards 1/2 and 1: theta_hat = (.4, .3), see test_ridge.py
X, R = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 1.0])
SMALL = calibrated.add_rewards(NoisyRidge(ridge.prior_belief(2, 1.0)), X, R)


def test_the_estimated_noise_of_two_rewards_by_hand() -> None:
    """Sum r^2 = 1.25, b'theta_hat = 1.5 x .4 + 1 x .3 = .9: sigma^2 = (1 + .35) / 3 = .45.

    The same .35 is the residuals' (.5 - .4)^2 + (1 - .7)^2 = .1, and lam |theta_hat|^2 = .25.
    """
    assert (SMALL.squared_rewards, SMALL.n_rewards) == (1.25, 2)
    assert calibrated.estimate_noise_deviation(SMALL) == pytest.approx(np.sqrt(0.45), rel=1e-14)
    residual = ((R - X @ [0.4, 0.3]) ** 2).sum() + 0.4**2 + 0.3**2
    assert residual == pytest.approx(0.35, rel=1e-14)


def test_before_the_first_reward_the_noise_is_one() -> None:
    assert calibrated.estimate_noise_deviation(NoisyRidge(ridge.prior_belief(4, 2.0))) == 1.0


def test_the_noise_is_estimated() -> None:
    """4000 rewards with noise of deviation .3: the estimate is within 4 standard errors, .3 / sqrt(8000) each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    r = X @ [1.0, -2.0, 0.5, 0.0] + 0.3 * rng.standard_normal(4000)
    belief = calibrated.add_rewards(
        calibrated.add_rewards(NoisyRidge(ridge.prior_belief(4, 1.0)), X[:1000], r[:1000]), X[1000:], r[1000:]
    )
    assert calibrated.estimate_noise_deviation(belief) == pytest.approx(0.3, abs=4 * 0.3 / np.sqrt(8000))


def test_rewards_without_noise_leave_only_the_prior() -> None:
    """1,000 rewards that are all 0: sigma^2 = 1 / 1001. Rounding below zero is zero."""
    belief = calibrated.add_rewards(NoisyRidge(ridge.prior_belief(2, 1.0)), np.ones((1000, 2)), np.zeros(1000))
    assert calibrated.estimate_noise_deviation(belief) == pytest.approx(1001**-0.5, rel=1e-14)
    rounded = NoisyRidge(belief.ridge, -1e-9, 1000)
    assert calibrated.estimate_noise_deviation(rounded) == pytest.approx(1001**-0.5, rel=1e-14)


def test_non_finite_rows_are_not_counted() -> None:
    rows = np.vstack([X, [[np.nan, 1.0], [1.0, 1.0], [1e200, 0.0]]])
    belief = calibrated.add_rewards(NoisyRidge(ridge.prior_belief(2, 1.0)), rows, np.array([*R, 1.0, np.inf, 1.0]))
    assert (belief.squared_rewards, belief.n_rewards) == (1.25, 2)
    np.testing.assert_array_equal(belief.ridge.V, SMALL.ridge.V)


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.0])
def test_calibrated_thompson_sampling_equals_gamma_equal_to_sigma(scale: float) -> None:
    """Whatever gamma it is given; the posterior's deviations are sigma sqrt(.4) and sigma sqrt(.6)."""
    contexts, width = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), scale * np.sqrt(0.45)
    calibrated = CalibratedThompson(1.0, scale).score(SMALL, contexts, 99.0, 3, np.random.default_rng(7))[0]
    thompson = Thompson(1.0).score(SMALL.ridge, contexts, width, 3, np.random.default_rng(7))[0]
    np.testing.assert_allclose(calibrated.score, thompson.score, rtol=1e-12)
    np.testing.assert_allclose(calibrated.expected_reward, contexts @ [0.4, 0.3], rtol=1e-12)
    means, deviations = CalibratedThompson(1.0, scale).coefficients(SMALL)
    np.testing.assert_allclose(means, [0.4, 0.3], rtol=1e-14)
    np.testing.assert_allclose(deviations, np.sqrt([0.45 * 0.4, 0.45 * 0.6]), rtol=1e-14)
