"""Paired differences: the case, the guards, and the coverage of the interval."""

import math

import numpy as np
import pytest
from scipy import stats

from fedcohort.results.difference import estimate_mean, paired_difference, run_t_test, summarise_differences
from results.statistics_cases import approx_nested, load_case


def test_the_difference_of_a_case_by_hand() -> None:
    inputs, expected = load_case(5)
    a, b = ({int(seed): value for seed, value in inputs[condition].items()} for condition in "ab")
    difference = paired_difference(a, b)
    assert {name: getattr(difference, name) for name in expected} == approx_nested(expected)
    mirrored = paired_difference(a, b, sign=-1)
    assert (mirrored.mean, mirrored.low, mirrored.p) == pytest.approx(
        (-difference.mean, -difference.high, difference.p)
    )
    reordered = paired_difference(dict(reversed(a.items())), b)
    assert reordered == difference


def test_only_common_seeds_count() -> None:
    difference = paired_difference({0: 1.0, 1: 2.0, 2: 5.0}, {1: 1.0, 2: 1.0, 3: 0.0})
    assert (difference.n, difference.mean) == (2, 2.5)
    assert (difference.median, difference.worst, difference.best) == (2.5, 1.0, 4.0)
    assert paired_difference({0: 1.0}, {1: 1.0}).reason == "no common seeds"
    assert paired_difference({0: 1.0}, {0: 1.0}).reason == "one common seed"


def test_equal_or_diverged_differences_have_no_interval() -> None:
    constant = paired_difference({0: 0.9, 1: 0.6}, {0: 0.8, 1: 0.5})
    assert constant.mean == pytest.approx(0.1)
    assert constant.reason == "same on all 2 seeds"
    assert math.isnan(constant.half_width)
    assert math.isnan(constant.p)
    diverged = paired_difference({0: 0.9, 1: math.nan, 2: math.inf}, {0: 0.8, 1: 0.5, 2: 0.1})
    assert (diverged.n_diverged, diverged.reason) == (2, "diverged on 2 of 3 seeds")
    assert math.isnan(diverged.mean)
    assert math.isnan(diverged.p)
    assert estimate_mean([0.5, 0.5]).half_width == 0.0


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_interval_covers_the_truth(n: int) -> None:
    """2,000 normal samples: two standard errors of a share of .95 are .01."""
    x = np.random.default_rng(n).normal(1.0, 1.0, (2000, n))
    half_width, _ = run_t_test(x)
    assert 0.935 <= (np.abs(x.mean(axis=1) - 1.0) <= half_width).mean() <= 0.965
    summary = summarise_differences(dict(enumerate(x[0])))
    test = stats.ttest_1samp(x[0], 0.0)
    assert (summary.low, summary.high) == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert summary.p == pytest.approx(test.pvalue)
