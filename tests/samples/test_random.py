import numpy as np

from case_loop import for_all
from fedcohort.samples.base import SampleRequest
from fedcohort.samples.random import Random


def request(n: int, seed: int = 0) -> SampleRequest:
    return SampleRequest(0, n, np.inf, 0.0, 1.0, 5, 10, np.empty(0), lambda purpose: np.random.default_rng(seed))


@for_all(
    "fraction, n, used",
    [(0.5, 10, 5), (0.5, 11, 6), (0.07, 100, 7), (0.001, 30, 1), (1.0, 7, 7), (0.1, 1, 1), (0.3, 10, 3)],
)
def test_the_number_is_the_ceiling_of_the_fraction(fraction: float, n: int, used: int) -> None:
    assert len(Random(fraction).choose(None, request(n))) == used


def test_every_sample_has_the_same_probability() -> None:
    counts = sum(np.bincount(Random(0.3).choose(None, request(10, seed)), minlength=10) for seed in range(2000))
    assert np.abs(counts - 600).max() < 4.5 * np.sqrt(2000 * 0.3 * 0.7)
