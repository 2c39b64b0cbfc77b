"""Laplace noise: its moments, epsilon as a sum, and the extra that the other accountant needs."""

import importlib.util

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.signal_noise.laplace import Laplace

HAS_LIBRARY = importlib.util.find_spec("dp_accounting") is not None


def test_noise_has_the_scale_and_epsilon_adds_up() -> None:
    """Scale 0.5 of an interval of 4: standard deviation 2 sqrt(2)."""
    noise = Laplace([-1.0, 3.0], False, 1e-5, 0.5, "sum")
    reports = noise.perturb(np.full((40_000, 1), 1.0), np.random.default_rng(0))
    assert reports.mean() == pytest.approx(1.0, abs=5 * 2.83 / 200)
    assert reports.std() == pytest.approx(np.sqrt(8), rel=0.03)
    assert [noise.epsilon(n) for n in (0, 1, 10)] == [0.0, 2.0, 20.0]


@pytest.mark.skipif(HAS_LIBRARY, reason="dp-accounting is installed")
def test_the_missing_library_is_named() -> None:
    with pytest.raises(OptionError, match=r"accountant=pld needs .* --editable \"\.\[privacy\]\", or choose"):
        Laplace([0.0, 1.0], True, 1e-5, 1.0, "pld")


@pytest.mark.skipif(not HAS_LIBRARY, reason="needs dp-accounting")
def test_the_accounting_library_gives_a_smaller_epsilon_than_the_sum() -> None:
    """Values of dp-accounting 0.6.0."""
    noise = Laplace([0.0, 1.0], True, 1e-5, 10.0, "pld")
    assert [noise.epsilon(n) for n in (1, 10, 100)] == pytest.approx([0.09998, 0.98996, 4.22035], abs=1e-3)
