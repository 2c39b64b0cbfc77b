"""The winner of a setting: the case, and the bias that cross-fitting removes."""

import numpy as np

from fedcohort.results.headroom import cross_fit_best_method
from results.statistics_cases import approx_nested, load_case


def test_the_winner_of_a_case_by_hand() -> None:
    inputs, expected = load_case(11)
    result = cross_fit_best_method(np.array(inputs["D"]))
    assert result.best_row == expected.pop("winner")
    assert result.cross_fitted_difference is not None
    naive = np.mean(inputs["D"][result.best_row])
    numbers = [
        naive,
        result.cross_fitted_difference.mean,
        result.fold_share,
        result.cross_fitted_difference.low,
        result.cross_fitted_difference.high,
    ]
    assert numbers == approx_nested(list(expected.values()))
    few = cross_fit_best_method(np.array(inputs["D"])[:, :4])
    assert few.cross_fitted_difference is None


def test_the_naive_winner_of_equal_methods_is_biased() -> None:
    x = np.random.default_rng(0).normal(size=(300, 20, 10))
    winners = [cross_fit_best_method(differences) for differences in x]
    assert np.mean([x[i, winner.best_row].mean() for i, winner in enumerate(winners)]) > 0.5
    assert (
        abs(np.mean([winner.cross_fitted_difference.mean for winner in winners if winner.cross_fitted_difference]))
        < 0.08
    )
