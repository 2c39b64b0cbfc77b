"""FLASH's label noise: the moments of its rates, and the bits of the concentration that FLASH has."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.label_noise.beta import Beta
from fedcohort.rng import Draws

K = 20_000


@for_all("concentration", [100, 10, 2])
@for_all("a", [5, 15, 25])
def test_moments_of_the_beta_distribution(a: float, concentration: float) -> None:
    """Beta(p, q) with p + q = c has the variance m (1 - m) / (c + 1); the sample's own differs by some per cent."""
    rates = Beta(a, concentration).rates(Draws(2, K))
    mean, sd = a / 100, np.sqrt(a * (100 - a) / (concentration + 1)) / 100
    assert rates.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(K))
    assert rates.std() == pytest.approx(sd, rel=0.04)


def test_the_spreads_in_the_docstring_are_correct() -> None:
    """a = 15: the standard deviation is sqrt(15 x 85 / (c + 1)) / 100; shares of clients at c = 100 and c = 2."""
    spreads = [float(np.sqrt(15 * 85 / (c + 1)) / 100) for c in (100, 10, 2)]
    assert spreads == pytest.approx([0.036, 0.108, 0.206], abs=5e-4)
    rates_at_100, rates_at_2 = (Beta(15, c).rates(Draws(0, K)) for c in (100, 2))
    assert np.mean((rates_at_100 > 0.10) & (rates_at_100 < 0.21)) == pytest.approx(0.9, abs=0.03)
    assert np.mean(rates_at_2 < 0.01) == pytest.approx(0.3, abs=0.015)
    assert np.mean(rates_at_2 > 0.5) == pytest.approx(1 / 11, abs=0.01)


@pytest.mark.parametrize("a", [0.3, 2.3, 15, 33.3])
def test_a_concentration_of_100_equals_flashs_rates_bit_for_bit(a: float) -> None:
    expected = Draws(7, 50).generator("label_noise").beta(a, 100 - a, 50)
    np.testing.assert_array_equal(Beta(a, 100).rates(Draws(7, 50)), expected)


@pytest.mark.parametrize("concentration", [1e-100, 1e-30, 1e30])
def test_extreme_concentrations_give_valid_rates(concentration: float) -> None:
    """Rates are 0 or 1 at a concentration near 0, 1 with probability a / 100, and the mean at a very large one."""
    rates = Beta(15, concentration).rates(Draws(1, K))
    assert rates.mean() == pytest.approx(0.15, abs=4 * np.sqrt(0.15 * 0.85 / K))
    assert set(rates) == {0.0, 1.0} if concentration < 1 else np.ptp(rates) < 1e-12


def test_a_concentration_whose_parameters_would_be_zero_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"^concentration must be a number in \[1e-100, inf\), got 5e-324$"):
        Beta(15, 5e-324)
