"""The winner of a setting: the case, and the bias that cross-fitting removes."""

import numpy as np

from fedcohort.results.winner import cross_fit
from results.known_cases import case, near


def test_the_winner_of_a_case_by_hand() -> None:
    given, expected = case(11)
    found = cross_fit(np.array(given["D"]))
    assert found.index == expected.pop("winner")
    assert found.left_out is not None
    numbers = [found.naive, found.left_out.mean, found.picked, found.left_out.low, found.left_out.high]
    assert numbers == near(list(expected.values()))
    few = cross_fit(np.array(given["D"])[:, :4])
    assert few.left_out is None


def test_the_naive_winner_of_equal_methods_is_biased() -> None:
    x = np.random.default_rng(0).normal(size=(300, 20, 10))
    winners = [cross_fit(each) for each in x]
    assert np.mean([winner.naive for winner in winners]) > 0.5
    assert abs(np.mean([winner.left_out.mean for winner in winners if winner.left_out])) < 0.08
