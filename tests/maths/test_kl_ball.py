"""The tilted distribution in the ball: by hand, over many random cases, and against scipy's constrained optimizer."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import entr, rel_entr, softmax

from case_loop import for_all
from fedcohort.maths.kl_ball import tilt_within_kl_ball


def divergence(p: np.ndarray) -> np.ndarray:
    divergences: np.ndarray = rel_entr(p, 1 / p.shape[-1]).sum(-1)
    return divergences


def test_a_radius_that_does_not_bind_gives_unlimited_weights() -> None:
    # softmax of (.5, 1, 1.5, 2), whose divergence from equal weights is 0.1501 < 1
    p, multiplier = tilt_within_kl_ball(0.5 * np.array([1.0, 2, 3, 4]), 1.0)
    np.testing.assert_allclose(p, [0.1015363, 0.1674051, 0.2760043, 0.4550542], atol=1e-7)
    assert multiplier == 0


def test_one_larger_loss_gets_the_weight_that_the_radius_allows() -> None:
    # p = (a, a, a, 1 - 3a), log((1 - 3a) / a) = 10 / (1 + lambda), and log 4 - H(p) = .5
    p, multiplier = tilt_within_kl_ball(np.array([0.0, 0, 0, 10]), 0.5)
    np.testing.assert_allclose(p, [0.0910245886] * 3 + [0.7269262342], atol=1e-10)
    assert float(multiplier[0]) == pytest.approx(3.8130252046, abs=1e-9)
    assert divergence(p) == pytest.approx(0.5, abs=1e-12)


def test_the_weights_of_two_clients_by_hand() -> None:
    # q = (.1, .9): log 2 - H = .3680642, so that a radius of .1 binds; .5 doesn't
    q = np.log([0.1, 0.9])
    p, multiplier = tilt_within_kl_ball(q, 0.1)
    np.testing.assert_allclose(p, [0.2802053738, 0.7197946262], atol=1e-10)
    assert float(multiplier[0]) == pytest.approx(1.3289422928, abs=1e-9)
    np.testing.assert_allclose(tilt_within_kl_ball(q, 0.5)[0], [0.1, 0.9], atol=1e-15)


def test_losses_for_which_a_fixed_interval_is_too_short() -> None:
    assert float(tilt_within_kl_ball(np.array([0.0, 1e4, 2e4, 3e4]), 0.5)[1][0]) == pytest.approx(
        9085.9345950, abs=1e-6
    )


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12, 1e100, 1e300])
def test_losses_of_any_scale_are_handled(scale: float) -> None:
    # the middle one is 1 below the top whatever the scale: of (0, -1, -inf) KL = log 3 - H(.731, .269) = .516, and
    # .405 as s -> 0+, so that a radius of .45 has its root at s of order 1 in an interval of length log(scale)
    p, _ = tilt_within_kl_ball(np.array([0.0, -1.0, -scale]), 0.45)
    assert np.isfinite(p).all()
    assert divergence(p) <= 0.45 + 1e-12
    if scale > 1e3:
        assert divergence(p) == pytest.approx(0.45, abs=1e-9)


def test_extreme_radii_and_equal_losses_give_valid_weights() -> None:
    np.testing.assert_array_equal(tilt_within_kl_ball(np.array([3.0]), 1.0)[0], [1.0])
    p, multiplier = tilt_within_kl_ball(np.full(4, 7.0), 1.0)
    np.testing.assert_array_equal(p, np.full(4, 0.25))
    assert multiplier == 0
    p, multiplier = tilt_within_kl_ball(np.array([1.0, 2.0, 5.0]), 0.0)
    np.testing.assert_allclose(p, np.full(3, 1 / 3), atol=1e-15)
    assert np.isinf(multiplier)
    # the largest divergence of three weights is log 3: a radius beyond it never binds
    np.testing.assert_allclose(tilt_within_kl_ball(np.array([0.0, 0, 1e6]), np.log(3))[0], [0, 0, 1], atol=1e-12)


def test_adding_a_constant_changes_nothing() -> None:
    q = np.array([0.0, 0.3, 1.2, -2.0])
    np.testing.assert_allclose(tilt_within_kl_ball(q, 0.05)[0], tilt_within_kl_ball(q + 5, 0.05)[0], atol=1e-12)


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5, 1.0])
def test_twenty_thousand_cases_are_feasible_and_complementary(rho: float) -> None:
    """4 radii x 25 sizes x 200: the root is always found. Where lambda > 0 the ball binds; else p is softmax(log q)."""
    rng = np.random.default_rng(int(1000 * rho))
    n_binding = 0
    for n in range(2, 27):
        concentration = rng.choice([0.1, 1.0, 10.0], (200, 1))
        prior = rng.gamma(concentration, size=(200, n)) + 1e-12
        loss = rng.exponential(rng.choice([0.1, 1.0, 10.0], (200, 1)), (200, n))
        log_q = np.log(prior / prior.sum(1, keepdims=True)) + rng.choice([0.1, 0.5, 1.0], (200, 1)) * loss
        p, multiplier = tilt_within_kl_ball(log_q, rho)
        binds = multiplier[:, 0] > 0
        n_binding += int(binds.sum())
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)
        assert (multiplier >= 0).all()
        assert (divergence(p) <= rho + 1e-10).all()
        np.testing.assert_allclose(divergence(p)[binds], rho, atol=1e-10)
        np.testing.assert_allclose(p[~binds], softmax(log_q[~binds], axis=1), atol=1e-12)
        np.testing.assert_allclose(p, softmax(log_q / (1 + multiplier), axis=1), atol=1e-12)
    assert 500 < n_binding < 5000, "both cases occur"


def test_rows_are_independent_and_lambda_is_scipys_root() -> None:
    rng = np.random.default_rng(1)
    log_q = rng.normal(0, 4, (50, 6))
    p, multiplier = tilt_within_kl_ball(log_q, 0.3)
    for i in range(50):
        np.testing.assert_allclose(tilt_within_kl_ball(log_q[i], 0.3)[0], p[i], atol=1e-14)

        def excess(x: float, row: np.ndarray = log_q[i]) -> float:
            return float(divergence(softmax(row / (1 + x)))) - 0.3

        expected = brentq(excess, 0, 1e4, xtol=1e-13, rtol=1e-14) if excess(0) > 0 else 0.0
        assert float(multiplier[i, 0]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@for_all("seed", range(8))
def test_the_solution_maximises_the_objective(seed: int) -> None:
    """max <p, log q> + H(p) over the simplex and the ball, by SLSQP from equal weights."""
    rng = np.random.default_rng(seed)
    log_q = rng.normal(0, 2, 4)
    rho = [0.05, 0.3][seed % 2]
    constraints = [
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "ineq", "fun": lambda p: rho - divergence(p)},
    ]
    solution = minimize(
        lambda p: -p @ log_q - entr(p).sum(),
        np.full(4, 0.25),
        bounds=[(1e-9, 1)] * 4,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solution.success
    np.testing.assert_allclose(tilt_within_kl_ball(log_q, rho)[0], solution.x, atol=1e-4)
