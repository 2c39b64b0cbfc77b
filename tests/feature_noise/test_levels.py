"""How much noise clients have: uniform, or a share of them all of it."""

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.feature_noise import levels
from fedcohort.label_noise.bimodal import Bimodal
from fedcohort.rng import Draws


def test_uniform_levels_have_the_moments_of_the_uniform_distribution() -> None:
    """Mean sigma / 2, variance sigma^2 / 12, whose own relative error is sqrt(0.8 / n)."""
    drawn_levels = levels.DrawnNoiseLevels(3.0, "uniform", 0.4).levels(Draws(0, 20_000))
    assert drawn_levels.mean() == pytest.approx(1.5, abs=4.5 * 3 / np.sqrt(12 * 20_000))
    assert drawn_levels.var() == pytest.approx(9 / 12, rel=4.5 * np.sqrt(0.8 / 20_000))
    assert 0 <= drawn_levels.min() < drawn_levels.max() < 3


@pytest.mark.parametrize(("share", "clients", "noisy"), [(0.4, 50, 20), (0.0, 9, 0), (1.0, 9, 9), (0.5, 3, 2)])
def test_exactly_a_share_of_the_clients_has_the_level(share: float, clients: int, noisy: int) -> None:
    for seed in range(5):
        drawn_levels = levels.DrawnNoiseLevels(0.7, "bimodal", share).levels(Draws(seed, clients))
        assert sorted(drawn_levels) == [0.0] * (clients - noisy) + [0.7] * noisy


def test_feature_noise_is_independent_of_label_noise() -> None:
    """Both groups draw four of ten clients: of 2,000 seeds the two overlap in 1.6 of them on average (16 / 10).

    The overlap is hypergeometric with the variance 4 x .4 x .6 x 6 / 9 = 0.64.
    """
    pairs = [
        int(
            (
                (levels.DrawnNoiseLevels(1.0, "bimodal", 0.4).levels(Draws(s, 10)) > 0)
                & (Bimodal(0.4, 1, 0).rates(Draws(s, 10)) > 0)
            ).sum()
        )
        for s in range(2000)
    ]
    assert np.mean(pairs) == pytest.approx(1.6, abs=4.5 * np.sqrt(0.64 / 2000))


def test_noise_level_options_out_of_range_are_rejected() -> None:
    with pytest.raises(OptionError, match=r"^law must be one of uniform, bimodal, got 'normal'$"):
        levels.DrawnNoiseLevels(1.0, "normal", 0.4)
    with pytest.raises(OptionError, match=r"^sigma must be a number in \[1e-12, 1000\], got 1e-200$"):
        levels.DrawnNoiseLevels(1e-200, "uniform", 0.4)  # whose square, by which a blur divides, is 0
