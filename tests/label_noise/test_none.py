"""No label noise, and the flip that kinds share which don't say otherwise."""

import numpy as np

from fedcohort.label_noise.none import NoNoise
from fedcohort.rng import Draws

K = 20_000


def test_no_client_has_a_wrong_label() -> None:
    assert NoNoise().rates(Draws(0, 5)).tolist() == [0.0] * 5


def test_a_flipped_label_is_uniform_over_the_other_classes() -> None:
    labels = np.full(K, 3)
    noisy = NoNoise().flip(labels, 0.4, 5, np.random.default_rng(0))
    counts = np.bincount(noisy, minlength=5)
    other_counts = np.delete(counts, 3)
    assert abs(counts[3] - 0.6 * K) < 4 * np.sqrt(0.24 * K)
    assert np.abs(other_counts - 0.1 * K).max() < 4.5 * np.sqrt(0.09 * K)
