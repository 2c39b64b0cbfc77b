"""The winner of a setting: the case, and the bias that cross-fitting removes."""

import math

import numpy as np

from fedcohort.results.winner import cross_fit
from results.known_cases import case, near


def test_case() -> None:
    given, expected = case(11)
    found = cross_fit(np.array(given["D"]))
    assert found.index == expected.pop("winner")
    assert {name: getattr(found, name) for name in expected} == near(expected)
    few = cross_fit(np.array(given["D"])[:, :4])
    assert math.isnan(few.cross_fitted)


def test_of_equal_methods_the_naive_winner_is_flattered() -> None:
    x = np.random.default_rng(0).normal(size=(300, 20, 10))
    winners = [cross_fit(each) for each in x]
    assert np.mean([winner.naive for winner in winners]) > 0.5
    assert abs(np.mean([winner.cross_fitted for winner in winners])) < 0.08
