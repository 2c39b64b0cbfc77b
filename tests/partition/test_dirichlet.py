import numpy as np
import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.partition.base import SamplePool
from fedcohort.partition.dirichlet import Dirichlet

LABELS = np.arange(6000) % 10


def split(alpha: float, min_samples: int, clients: int, labels: np.ndarray = LABELS, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return list(Dirichlet(alpha, min_samples).split(SamplePool(labels, 10), clients, rng))


def skew(parts: list[np.ndarray]) -> float:
    """Mean share of the most frequent class."""
    return float(np.mean([np.bincount(LABELS[part]).max() / len(part) for part in parts]))


@for_all("alpha", [1e-300, 1e-3, 0.1, 1.0, 1e6])
@for_all("clients, least", [(10, 10), (1000, 5), (1000, 6), (6000, 1), (1, 6000)])
def test_partitions_are_disjoint_complete_and_above_the_minimum(alpha: float, clients: int, least: int) -> None:
    """Drawing again until all clients have enough samples would never end in most of these cases."""
    parts = split(alpha, least, clients)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(6000))
    assert min(len(part) for part in parts) >= least


def test_a_smaller_alpha_is_more_skewed() -> None:
    skew_by_alpha = {alpha: skew(split(alpha, 10, 20)) for alpha in (0.01, 0.1, 1.0, 100.0)}
    assert skew_by_alpha[0.01] > skew_by_alpha[0.1] > skew_by_alpha[1.0] > skew_by_alpha[100.0]
    assert skew_by_alpha[0.01] > 0.8
    assert skew_by_alpha[100.0] < 0.15


def test_a_large_alpha_gives_uniform_classes() -> None:
    counts = np.stack([np.bincount(LABELS[part], minlength=10) for part in split(1e9, 1, 20)])
    assert np.abs(counts - 30).max() <= 1


def test_an_impossible_minimum_names_the_largest_possible() -> None:
    with pytest.raises(OptionError, match=r"partition.min_samples=7 .* 1000 clients; feasible: .*min_samples<=6$"):
        split(0.5, 7, 1000)
    assert len(split(0.5, 6, 1000)) == 1000
