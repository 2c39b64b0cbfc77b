"""Gaussian noise: its moments, and an epsilon that is exact."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from fedcohort.errors import OptionError
from fedcohort.signal_noise.gaussian import Gaussian

DELTA = 1e-5


def gaussian(sigma: float = 1.0, clip: tuple[float, ...] = (0.0, 5.0), bound: bool = False) -> Gaussian:
    return Gaussian(list(clip), bound, DELTA, sigma)


def test_noise_is_normal_around_the_clipped_number() -> None:
    """Interval of length 4 and sigma 0.5: standard deviation 2, around -1, 0.5 and 3."""
    values = np.tile([-9.0, 0.5, 7.0], (40_000, 1))
    reports = gaussian(0.5, (-1.0, 3.0)).perturb(values, np.random.default_rng(0))
    np.testing.assert_allclose(reports.mean(0), [-1.0, 0.5, 3.0], atol=5 * 2 / 200)
    np.testing.assert_allclose(reports.std(0), 2.0, rtol=0.02)


def test_nan_reports_stay_nan_and_a_second_clip_is_optional() -> None:
    values = np.array([[np.nan, -np.inf, np.inf, 2.0]])
    reports = gaussian(3.0, bound=True).perturb(values, np.random.default_rng(0))
    assert np.isnan(reports[0, 0])
    assert ((reports[0, 1:] >= 0) & (reports[0, 1:] <= 5)).all()


@pytest.mark.parametrize(
    ("sigma", "n", "expected"), [(5.0, 1, 0.7255217677), (5.0, 10, 2.5943833856), (5.0, 100, 9.99725615)]
)
def test_epsilon_is_that_of_the_privacy_loss_distribution(sigma: float, n: int, expected: float) -> None:
    """Expected: dp-accounting 0.6.0 (PLDAccountant, GaussianDpEvent), whose grid rounds epsilon up by 1e-4."""
    assert gaussian(sigma).epsilon(n) == pytest.approx(expected, abs=2e-4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [1e-310, 1e-300, 1e-50])
def test_epsilon_of_a_tiny_delta_is_below_the_bound(delta: float) -> None:
    """1 / 1e-310 overflows. At 1e-50 the bound is within 3 % of epsilon."""
    epsilon, bound = Gaussian([0.0, 5.0], False, delta, 1.0).epsilon(1), 0.5 + math.sqrt(-2 * math.log(delta))
    assert 0.97 * bound < epsilon < bound


@pytest.mark.parametrize(("sigma", "n"), [(0.3, 4), (1.0, 1), (5.0, 1000), (50.0, 7)])
def test_epsilon_solves_the_equation_and_is_below_the_bound(sigma: float, n: int) -> None:
    """k answers of sigma are one of sigma / sqrt(k), and rho-zCDP implies eps = rho + 2 sqrt(rho ln(1/delta))."""
    epsilon, mu = gaussian(sigma).epsilon(n), math.sqrt(n) / sigma
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(DELTA, rel=1e-6)
    rho = n / (2 * sigma**2)
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / DELTA))
    assert epsilon == pytest.approx(gaussian(sigma * 3).epsilon(9 * n))


def test_without_reports_epsilon_is_zero() -> None:
    assert gaussian().epsilon(0) == 0.0
    assert gaussian(1e6).epsilon(1) == 0.0  # delta(0) is below delta


@pytest.mark.parametrize("clip", [[1.0], [5.0, 0.0], [1.0, 1.0], "05"])
def test_a_clip_interval_must_have_two_ends(clip: list[float]) -> None:
    with pytest.raises(OptionError, match="clip must be a list of"):
        Gaussian(clip, True, DELTA, 1.0)
