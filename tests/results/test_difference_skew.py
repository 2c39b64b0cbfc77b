"""The guard against methods that collapse on some seeds."""

import math

import numpy as np
import pytest

from fedcohort.results.difference import Difference, collapses_on_some_seeds, residual_skewness, summarise_differences


def differences(values: np.ndarray) -> list[Difference]:
    """Return differences of [settings, seeds]."""
    return [summarise_differences(dict(enumerate(row))) for row in values]


@pytest.mark.parametrize(("tail", "low", "high"), [(0.0, 0.0, 0.05), (0.5, 0.9, 1.0)])
def test_a_long_left_tail_is_marked(tail: float, low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(60, 16, 10))
    draws = -np.exp(tail * normal) if tail else normal
    assert low <= np.mean([collapses_on_some_seeds(differences(draw)) for draw in draws]) <= high


def test_few_settings_or_seeds_are_not_judged() -> None:
    x = -np.exp(np.random.default_rng(0).normal(size=(16, 10)))
    assert not collapses_on_some_seeds(differences(x[:9]))
    assert not collapses_on_some_seeds(differences(x[:, :9]))
    assert math.isnan(residual_skewness([]))
