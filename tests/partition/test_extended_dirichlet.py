"""Extended Dirichlet: exactly C classes per client, whose shares are those of a Dirichlet draw."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.partition.base import SamplePool
from fedcohort.partition.dirichlet import Dirichlet
from fedcohort.partition.extended_dirichlet import ExtendedDirichlet, choose_class_holders

LABELS = np.random.default_rng(1).permutation(np.arange(6000) % 10)


def split(
    classes: int, alpha: float, min_samples: int, clients: int, labels: np.ndarray = LABELS, seed: int = 0
) -> list[np.ndarray]:
    partition = ExtendedDirichlet(classes, alpha, min_samples)
    return partition.split(SamplePool(labels, 10), clients, np.random.default_rng(seed))


def count_classes(parts: list[np.ndarray], labels: np.ndarray = LABELS) -> np.ndarray:
    return np.stack([np.bincount(labels[part], minlength=10) for part in parts])


@for_all("alpha", [1e-300, 0.1, 10.0, 1e6])
@for_all("classes, clients, least", [(1, 10, 10), (2, 50, 10), (3, 1000, 6), (10, 60, 100), (4, 3, 1)])
def test_every_client_has_as_many_classes_as_stated(alpha: float, classes: int, clients: int, least: int) -> None:
    counts = count_classes(split(classes, alpha, least, clients))
    np.testing.assert_array_equal(counts.sum(0), np.full(10, 600))
    np.testing.assert_array_equal((counts > 0).sum(1), np.full(clients, classes))
    assert counts[counts > 0].min() >= -(-least // classes)


def test_all_classes_are_the_dirichlet_partition() -> None:
    """With C = 10 each client holds all classes: the draws after the allocation are those of partition=dirichlet."""
    rng = np.random.default_rng(0)
    rng.random((20, 10))  # the allocation
    expected = Dirichlet(5.0, 1).split(SamplePool(LABELS, 10), 20, rng)
    for part, expected_part in zip(split(10, 5.0, 1, 20), expected, strict=True):
        np.testing.assert_array_equal(part, expected_part)


def test_the_allocation_is_uniform_over_sets_of_classes() -> None:
    """Without binding limits: P(c) = C / 10 and P(c and d) = C (C - 1) / 90, within 4.5 standard deviations."""
    K, limits = 20_000, (np.zeros(10, np.int64), np.full(10, 20_000))
    is_holder = choose_class_holders(3, *limits, np.random.default_rng(0).random((K, 10)))
    pairs = is_holder.T.astype(float) @ is_holder / K
    assert np.abs(np.diag(pairs) - 0.3).max() < 4.5 * np.sqrt(0.21 / K)
    assert np.abs(pairs[~np.eye(10, dtype=bool)] - 6 / 90).max() < 4.5 * np.sqrt(0.07 / K)


def test_an_equal_share_of_a_class_for_a_large_alpha() -> None:
    counts = count_classes(split(2, 1e9, 1, 50))
    for c in range(10):
        class_counts = counts[counts[:, c] > 0, c]
        assert class_counts.max() - class_counts.min() <= 1


def test_a_rare_class_has_few_clients_and_every_class_has_one() -> None:
    """Class 9 has 12 samples: with 5 for each of its clients two of 100 clients can hold it."""
    labels = np.concatenate([np.arange(5400) % 9, np.full(12, 9)])
    counts = count_classes(split(2, 10.0, 10, 100, labels), labels)
    np.testing.assert_array_equal((counts > 0).sum(1), np.full(100, 2))
    assert 1 <= (counts[:, 9] > 0).sum() <= 2


def test_the_smallest_change_meets_the_limits() -> None:
    """Three clients prefer class 0, which two may hold and class 1 needs one: the least eager client gives way."""
    priorities = np.array([[0.1, 0.9, 0.8], [0.1, 0.5, 0.9], [0.1, 0.9, 0.95]])
    is_holder = choose_class_holders(1, np.array([0, 1, 0]), np.array([2, 3, 3]), priorities)
    np.testing.assert_array_equal(is_holder, [[1, 0, 0], [0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((11, 1.0, 10, 50), r"partition.classes=11 does not fit 10 classes .*: 1 <= partition.classes <= 10"),
        ((2, 1.0, 10, 3), r"partition.classes=2 does not fit 10 classes and 3 clients; feasible: 4 <= "),
        ((2, 1.0, 200, 100), r"partition.min_samples=200 requires 100 .* enough for 60 such parts, .* need 200"),
        ((1, 1.0, 601, 10), r"the smallest class is large enough for 0. Choose a smaller partition.min_samples"),
    ],
)
def test_impossible_splits_are_rejected(options: tuple[int, float, int, int], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        split(*options)
