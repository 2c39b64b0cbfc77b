"""How many seeds show a difference."""

import math

import numpy as np
import pytest

from fedcohort.results.difference import run_t_test
from fedcohort.results.verdict import count_seeds, find_detectable_difference
from results.statistics_cases import load_case


def test_the_number_of_seeds_of_a_case_by_hand() -> None:
    inputs, expected = load_case(12)
    assert count_seeds(inputs["sd"], inputs["worth"]) == expected
    assert count_seeds(math.nan, 1.0) is None
    assert count_seeds(0.0, 1.0) == 2
    assert count_seeds(2.7, 1.0, alpha=0.05 / 25) > expected


def test_the_smallest_detectable_difference_is_the_inverse() -> None:
    assert count_seeds(2.7, find_detectable_difference(2.7, 12)) == 12
    assert math.isnan(find_detectable_difference(2.7, 1))


def test_the_computed_number_of_seeds_has_the_power() -> None:
    n = count_seeds(1.0, 1.0)
    assert n == 10
    _, p = run_t_test(np.random.default_rng(0).normal(1.0, 1.0, (4000, n)))
    assert (p < 0.05).mean() == pytest.approx(0.8, abs=0.025)


def test_a_large_effect_needs_few_seeds() -> None:
    """The noncentral t of scipy is NaN for some of these effects, and 15 to 50 seeds were printed."""
    assert [count_seeds(spread, 0.01) for spread in (0.004, 0.003, 0.002, 0.0017, 0.001)] == [4, 3, 3, 3, 3]
