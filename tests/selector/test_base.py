"""Drawing without replacement: only those who are drawn are put in order, which must not be seen."""

import numpy as np
import pytest

from fedcohort.selector.base import successive


class Coarse:
    """A generator whose draws are often equal."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def standard_exponential(self, size: int) -> np.ndarray:
        return self.rng.integers(0, 4, size).astype(float)


def in_full(weights: np.ndarray, available: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    """Everybody sorted by key, then noise, then id."""
    noise = rng.standard_exponential(len(weights))
    usable = np.isfinite(weights) & (weights > 0)
    key = {k: noise[k] / weights[k] if usable[k] else np.inf for k in available}
    return sorted(available.tolist(), key=lambda k: (key[k], noise[k], k))[:count]


@pytest.mark.parametrize("make", [np.random.default_rng, Coarse])
def test_the_first_are_those_of_the_whole_order(make) -> None:
    rng = np.random.default_rng(0)
    for seed in range(500):
        K = int(rng.integers(1, 40))
        weights = rng.integers(0, 4, K).astype(float)
        weights[rng.random(K) < 0.2] = rng.choice([0.0, np.nan, np.inf])
        available = np.flatnonzero(rng.random(K) < 0.8)
        count = int(rng.integers(0, K + 2))
        found = successive(weights, available, count, make(seed))
        assert found.tolist() == in_full(weights, available, count, make(seed))
