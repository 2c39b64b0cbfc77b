import numpy as np
import pytest

from fedcohort.label_noise.base import flip
from fedcohort.label_noise.beta import Beta
from fedcohort.rng import Draws

K = 20_000


@pytest.mark.parametrize("a", [5, 15, 25])
def test_moments_of_the_beta_distribution(a: float) -> None:
    rates = Beta(a).rates(Draws(2, K))
    mean, sd = a / 100, np.sqrt(a * (100 - a) / 101) / 100  # Beta(a, b) with a + b = 100
    assert rates.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(K))
    assert rates.std() == pytest.approx(sd, rel=0.03)


def test_drawn_once_a_run() -> None:
    np.testing.assert_array_equal(Beta(15).rates(Draws(0, 9)), Beta(15).rates(Draws(0, 9, round=6)))
    assert not np.array_equal(Beta(15).rates(Draws(0, 9)), Beta(15).rates(Draws(1, 9)))


def test_a_flipped_label_is_any_other_class_alike() -> None:
    labels = np.full(K, 3)
    noisy = flip(labels, 0.4, 5, np.random.default_rng(0))
    counts = np.bincount(noisy, minlength=5)
    assert counts[3] == pytest.approx(0.6 * K, abs=4 * np.sqrt(0.24 * K))
    others = np.delete(counts, 3)
    assert np.abs(others - 0.1 * K).max() < 4.5 * np.sqrt(0.09 * K)


def test_more_noise_keeps_the_flips_of_less() -> None:
    labels = np.arange(1000) % 10
    little, much = (flip(labels, rate, 10, np.random.default_rng(1)) for rate in (0.1, 0.5))
    wrong = little != labels
    assert wrong.sum() > 50
    np.testing.assert_array_equal(much[wrong], little[wrong])
