"""LinUCB's widths by hand and against the confidence ellipsoid that they come from."""

import numpy as np

from fedcohort.bandit import linucb, ridge

# V = [[3, 1], [1, 2]], V^-1 = [[.4, -.2], [-.2, .6]], theta_hat = (.4, .3); see test_ridge.py
SMALL = ridge.add_rewards(ridge.prior_belief(2, 1.0), np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.5, 1.0]))
CONTEXTS = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])


def test_the_linucb_scores_of_three_contexts_by_hand() -> None:
    """x'V^-1 x = .4, .4 - .4 + .6, 4 * .6; gamma = 1 + sqrt(2 ln 20) = 3.447747."""
    width = linucb.confidence_widths(SMALL, CONTEXTS)
    np.testing.assert_allclose(width, np.sqrt([0.4, 0.6, 2.4]), rtol=1e-14)
    np.testing.assert_allclose(width, [0.63245553, 0.77459667, 1.54919334], atol=5e-9)
    scores = CONTEXTS @ ridge.posterior_mean(SMALL) + ridge.exploration_width(0, 2, 2, 1.0, 0.05) * width
    np.testing.assert_allclose(scores, [2.58054656, 3.37061321, 5.94122642], atol=5e-9)


def test_the_score_is_the_maximum_over_the_confidence_ellipsoid() -> None:
    """max of x'theta over |theta - theta_hat|_V <= gamma; the ellipse is theta_hat + gamma C^-T u for unit u."""
    angle = np.linspace(0, 2 * np.pi, 20_001)
    ellipse = 2.0 * np.linalg.solve(np.linalg.cholesky(SMALL.V).T, np.stack([np.cos(angle), np.sin(angle)]))
    np.testing.assert_allclose(
        (CONTEXTS @ ellipse).max(axis=1), 2.0 * linucb.confidence_widths(SMALL, CONTEXTS), rtol=1e-7
    )
