"""Corrections: the case, the families, and how often a setting without any difference has a winner."""

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from fedcohort.results.difference import run_t_test
from fedcohort.results.verdict import adjust_p_by_family, adjust_p_by_holm
from results.statistics_cases import approx_nested, load_case


def test_the_corrections_of_a_case_by_hand() -> None:
    inputs, expected = load_case(7)
    expected = [math.nan if value is None else value for value in expected]
    assert adjust_p_by_holm(inputs["p"]) == approx_nested(expected)
    assert adjust_p_by_holm([]) == []
    assert math.isnan(adjust_p_by_holm([math.nan])[0])


def test_a_corrected_p_value_names_its_family() -> None:
    ps = {("b", "x"): 0.01, ("a", "x"): 0.02, ("a", "y"): 0.03}
    assert adjust_p_by_family(ps, lambda test: test[0]) == approx_nested(
        {("b", "x"): 0.01, ("a", "x"): 0.04, ("a", "y"): 0.04}
    )
    assert adjust_p_by_family(ps, lambda test: test[1]) == approx_nested(
        {("b", "x"): 0.02, ("a", "x"): 0.02, ("a", "y"): 0.03}
    )
    assert adjust_p_by_family(ps, lambda _: "") == approx_nested({("b", "x"): 0.03, ("a", "x"): 0.04, ("a", "y"): 0.04})
    assert list(adjust_p_by_family(ps, lambda test: test[0])) == list(ps)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_without_a_difference_a_setting_rarely_has_a_winner(n: int) -> None:
    """2,000 settings of 25 equal methods: Holm rejects where the smallest p does."""
    _, ps = run_t_test(np.random.default_rng(n).normal(size=(2000, 25, n)))
    assert (ps.min(axis=1) * 25 < 0.05).mean() <= 0.06
    assert min(adjust_p_by_holm(ps[0])) == pytest.approx(min(1.0, 25 * ps[0].min()))


def test_holm_gives_what_statsmodels_gives() -> None:
    draws = np.random.default_rng(0)
    for m in (1, 2, 9, 40):
        ps = draws.choice([1e-9, 0.01, 0.02, 0.4, 1.0, *draws.random(3)], m)
        assert adjust_p_by_holm(ps.tolist()) == multipletests(ps, method="holm")[1].tolist()
