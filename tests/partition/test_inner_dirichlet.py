"""Inner Dirichlet: given sizes, class proportions of each client by a Dirichlet draw, and classes that run out."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.maths.dirichlet import draw_log_gamma
from fedcohort.partition.base import SamplePool
from fedcohort.partition.inner_dirichlet import InnerDirichlet, draw_class_counts

LABELS = np.random.default_rng(1).permutation(np.arange(6000) % 10)


@for_all("alpha", [1e-300, 1e-3, 0.5, 1e6])
@for_all("clients", [1, 7, 300, 6000])
def test_sizes_are_equal_and_all_samples_are_used(alpha: float, clients: int) -> None:
    parts = InnerDirichlet(alpha).split(SamplePool(LABELS, 10), clients, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(6000))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_given_sizes_are_exact() -> None:
    sizes = np.array([1, 4000, 1999])
    parts = InnerDirichlet(0.1).deal(SamplePool(LABELS, 10), sizes, np.random.default_rng(0))
    assert [len(part) for part in parts] == sizes.tolist()


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
def test_counts_are_dirichlet_multinomial_where_no_class_runs_out(alpha: float) -> None:
    """Mean n / C, variance n (C - 1) / C^2 (n + C alpha) / (1 + C alpha), for n draws of C classes."""
    K, C, n, rng = 20_000, 4, 30, np.random.default_rng(0)
    log_weights = draw_log_gamma(alpha, (K, C), rng)
    counts = draw_class_counts(log_weights, np.full(K, n), np.full(C, 10**7), rng)
    variance = n * (C - 1) / C**2 * (n + C * alpha) / (1 + C * alpha)
    np.testing.assert_allclose(counts.mean(0), n / C, atol=5 * np.sqrt(variance / K))
    np.testing.assert_allclose(counts.var(0), variance, rtol=0.06)


def test_a_large_alpha_is_a_random_sample() -> None:
    """The class counts of a client are hypergeometric: n = 300 of 6,000, of which 600 are of a class."""
    rng = np.random.default_rng(0)
    parts = [part for _ in range(20) for part in InnerDirichlet(1e9).split(SamplePool(LABELS, 10), 20, rng)]
    counts = np.stack([np.bincount(LABELS[part], minlength=10) for part in parts])
    np.testing.assert_allclose(counts.mean(0), 30)
    assert counts.var() == pytest.approx(300 * 0.1 * 0.9 * 5700 / 5999, rel=0.08)


def test_an_empty_class_is_replaced_by_the_next_preference() -> None:
    """All clients want class 0, then class 1: the first 5 of 12 draws empty class 0, and 4 more empty class 1."""
    log_weights = np.tile([0.0, -2000.0, -4000.0], (3, 1))
    table = draw_class_counts(log_weights, np.full(3, 4), np.array([5, 4, 9]), np.random.default_rng(0))
    np.testing.assert_array_equal(table.sum(0), [5, 4, 3])
    np.testing.assert_array_equal(table.sum(1), [4, 4, 4])
