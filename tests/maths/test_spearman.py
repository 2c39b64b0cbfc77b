"""Rank correlations by hand."""

import math

import numpy as np
import pytest

from fedcohort.maths.spearman import mean_ranks, rank_correlation


def test_ties_get_their_mean_rank() -> None:
    """1 is first; the three 5s share places 1, 2 and 3; 9 is last."""
    assert mean_ranks(np.array([5.0, 1.0, 5.0, 9.0, 5.0])).tolist() == [2, 0, 2, 4, 2]


@pytest.mark.parametrize(
    ("a", "b", "rho"),
    [
        ((1, 2, 3, 4), (10, 20, 30, 1e9), 1.0),  # any growing function
        ((1, 2, 3, 4), (4, 3, 2, 1), -1.0),
        ((1, 2, 3, 4, 5), (2, 1, 4, 3, 5), 0.8),  # 1 - 6 (1 + 1 + 1 + 1) / (5 x 24)
        ((1, 2, 3), (1, 1, 2), math.sqrt(3) / 2),  # ranks -1, 0, 1 and -.5, -.5, 1: 1.5 / sqrt(2 x 1.5)
    ],
)
def test_correlations_by_hand(a: tuple[float, ...], b: tuple[float, ...], rho: float) -> None:
    assert rank_correlation(np.array(a, dtype=float), np.array(b, dtype=float)) == pytest.approx(rho)


def test_missing_values_are_ignored() -> None:
    a = np.array([1.0, np.nan, 3.0, 2.0, -np.inf])
    assert rank_correlation(a, np.array([1.0, 99.0, 3.0, 2.0, 99.0])) == pytest.approx(1)


@pytest.mark.parametrize("a", [(), (1,), (2, 2, 2)])
def test_constant_values_have_no_correlation(a: tuple[float, ...]) -> None:
    assert math.isnan(rank_correlation(np.array(a, dtype=float), np.arange(len(a), dtype=float)))
