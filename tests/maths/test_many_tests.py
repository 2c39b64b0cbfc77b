"""Holm, Wilcoxon and the number of seeds, by hand and against scipy and published examples."""

import math

import numpy as np
import pytest
from scipy import stats

from fedcohort.maths.many_tests import (
    adjust_holm,
    bound_gaps,
    count_seeds,
    least_blocks,
    rank_rows,
    signed_ranks_p,
)


def test_holm_by_hand() -> None:
    # sorted .01 .02 .03 .2, times 4 3 2 1: .04 .06 .06 .2, and no adjusted p below the one before
    assert adjust_holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])
    assert adjust_holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert adjust_holm([0.6, 0.7]) == [1.0, 1.0]
    assert adjust_holm([]) == []


def test_holm_counts_only_what_was_tested() -> None:
    adjusted = adjust_holm([0.01, math.nan, 0.04])
    assert adjusted[0] == 0.02
    assert math.isnan(adjusted[1])
    assert adjusted[2] == 0.04


def test_ties_share_a_rank() -> None:
    assert rank_rows(np.array([[0.5, 0.9, 0.5, 0.1]])).tolist() == [[2.5, 1.0, 2.5, 4.0]]


def test_signed_ranks_by_hand() -> None:
    # of 2^5 signs of the ranks 1 to 5, T- <= 1 has two: none negative, or the smallest alone; two-sided 4 / 32
    assert signed_ranks_p(np.array([-1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(4 / 32)
    assert signed_ranks_p(np.array([5.0, 4.0, 3.0, 2.0, 1.0])) == pytest.approx(2 / 32)
    assert signed_ranks_p(-np.array([5.0, 4.0, 3.0, 2.0, 1.0])) == pytest.approx(2 / 32)
    assert signed_ranks_p(np.zeros(4)) == 1.0


def test_signed_ranks_are_demsars_example() -> None:
    # Demsar 2006, table 2: C4.5 with and without m on fourteen data sets; the ranks of the two zeros are split, R- is
    # 7 + 3.5 + 1.5 = 12, and z = (12 - 14 15 / 4) / sqrt(14 15 29 / 24) = -2.54. scipy corrects the variance for ties
    d = [0.005, -0.008, 0.017, 0.033, 0.006, -0.005, 0.007, 0.0, 0.063, 0.0, 0.022, 0.047, 0.009, 0.021]
    assert signed_ranks_p(np.array(d)) == pytest.approx(2 * stats.norm.sf(2.54), abs=5e-4)


@pytest.mark.parametrize("places", [0, 1, 9])
def test_signed_ranks_of_few_blocks_are_scipys(places: int) -> None:
    """Zeros and ties in plenty, some, none: scipy counts the same signs, far more slowly where there are ties."""
    rng = np.random.default_rng(places)
    for blocks in (2, 3, 5, 8):
        gaps = np.round(rng.normal(size=blocks), places)
        gaps[0] = gaps[0] or 1.0
        known = stats.wilcoxon(gaps, zero_method="zsplit", method=stats.PermutationMethod()).pvalue
        assert signed_ranks_p(gaps) == pytest.approx(known)


def test_a_diverged_run_loses_by_most() -> None:
    nan = math.nan
    gaps = bound_gaps(np.array([0.5, nan, 0.1, nan]), np.array([0.2, 0.4, nan, nan]))
    assert gaps.tolist() == pytest.approx([0.3, -1.3, 1.3, 0.0])


def test_least_blocks_by_hand() -> None:
    # 19 2 / 2^9 = .074, 19 2 / 2^10 = .037; alone 2 / 2^5 = .0625, 2 / 2^6 = .031
    assert least_blocks(19, 0.05) == 10
    assert least_blocks(1, 0.05) == 6
    assert least_blocks(1, 0.0625) == 6  # it has to be below the level


def test_seeds_by_hand() -> None:
    # spread = worth: n = 10 gives (2.262 + .883)^2 = 9.9 <= 10, and n = 9 (2.306 + .889)^2 = 10.2 > 9
    assert count_seeds(0.01, 0.01, 0.05) == 10
    assert count_seeds(0.0, 0.01, 0.05) == 2
    assert count_seeds(math.nan, 0.01, 0.05) is None
    assert count_seeds(9.0, 0.01, 0.05) == 100_000  # more are of no use


@pytest.mark.parametrize("spread", [0.003, 0.011, 0.05, 0.3])
def test_one_seed_less_is_too_few(spread: float) -> None:
    def need(n: int) -> float:
        return float(((stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) * spread / 0.01) ** 2)

    n = count_seeds(spread, 0.01, 0.05)
    assert n is not None
    assert n >= need(n)
    assert n == 2 or n - 1 < need(n - 1)


def test_that_many_seeds_have_the_power() -> None:
    spread, worth = 0.02, 0.01
    n = count_seeds(spread, worth, 0.05)
    assert n is not None
    shift = worth * math.sqrt(n) / spread  # of the noncentral t that the statistic then has
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, shift)
    assert power == pytest.approx(0.8, abs=0.02)
