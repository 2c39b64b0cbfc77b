"""A method over many settings: the case, families as units, and the worst decile."""

import math

import pytest

from fedcohort.results import overall as overall_results
from fedcohort.results.overall import average_over_families, average_over_seeds, find_worst_decile
from results.statistics_cases import approx_nested, load_case


def test_the_overall_result_of_a_case_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, expected = load_case(10)
    differences = {str(i): dict(enumerate(values)) for i, values in enumerate(inputs["X"])}
    family_of = {str(i): family for i, family in enumerate(inputs["families"])}
    overall = average_over_seeds(differences, family_of)
    assert {name: getattr(overall, name) for name in expected} == approx_nested(expected)
    assert average_over_seeds(dict(reversed(differences.items())), family_of) == overall
    assert average_over_families(differences, family_of) is None
    monkeypatch.setattr(overall_results, "MIN_FAMILIES", 2)
    pair = average_over_families(differences, family_of)
    assert pair is not None
    assert pair.n == 2
    assert pair.mean == pytest.approx((1.4 - 0.4) / 2)


def test_only_common_seeds_count() -> None:
    overall = average_over_seeds({"a": {0: 1.0, 1: 3.0, 2: 9.0}, "b": {0: 2.0, 1: 4.0}}, {"a": "x", "b": "y"})
    assert (overall.mean, overall.n) == (2.5, 2)
    assert average_over_seeds({}, {}).n == 0


def test_the_worst_decile_by_hand() -> None:
    assert find_worst_decile({"a": 1.0, "b": -2.0, "c": math.nan}) == (-2.0, "b")
    assert find_worst_decile({str(i): float(i) for i in range(20)}) == (0.5, "0")
    assert math.isnan(find_worst_decile({})[0])
