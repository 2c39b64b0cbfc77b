"""How a run's curves are smoothed."""

import numpy as np
import pandas as pd

from fedcohort.report.figure import curves


def test_a_moving_mean_of_equal_values_is_that_value() -> None:
    assert curves.smooth_values(pd.Series([2.5] * 9), 5).tolist() == [2.5] * 9
    assert curves.smooth_values(pd.Series([0.0, 3.0, 6.0]), 3).tolist() == [1.5, 3.0, 4.5]


def test_a_moving_mean_covers_rounds_not_measurements() -> None:
    """Of the rounds 0, 10, 20, 40, within 10: 0 and 3; 0, 3 and 6; 3 and 6; 9."""
    values = pd.Series([0.0, 3.0, 6.0, 9.0], index=[0, 10, 20, 40])
    assert curves.smooth_values(values, 21).tolist() == [1.5, 3.0, 4.5, 9.0]
    assert curves.smooth_values(values, 19).tolist() == values.tolist()


def test_only_many_points_are_smoothed() -> None:
    """Of 1,500 rounds 31, where more than 300 were measured_values; every fifth of them are readable as they are."""
    curve = pd.DataFrame({"test/acc": np.zeros(1500)})
    assert curves.choose_window_rounds(curve) == 31
    assert curves.choose_window_rounds(curve[:300]) == 1
    assert curves.choose_window_rounds(curve.where(curve.index.to_series() % 5 == 0, axis=0)) == 1
