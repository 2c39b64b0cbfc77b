"""The coordinate-wise median: closed forms."""

import pytest

from agg_harness import ROWS_WITH_ONE_FAR, aggregate_once, collect_updates, make_arrived, make_update
from config_options import make_component


def test_each_coordinate_has_its_own_median() -> None:
    """Sorted: 1, 2, 2, 3, 100 and -1, 0, 0, 1, 50. Samples do not count."""
    updates = [make_update(k, row, n=1 + 50 * k) for k, row in enumerate(ROWS_WITH_ONE_FAR)]
    assert aggregate_once(make_component("agg", "median"), updates).tolist() == [2, 0]


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_values() -> None:
    updates = [make_update(k, [value]) for k, value in enumerate((1.0, 10, 3, 2))]
    assert aggregate_once(make_component("agg", "median"), updates).tolist() == [2.5]


def test_half_of_the_updates_move_the_median_without_bound() -> None:
    """Two false updates of five move the median to the largest honest value; three of five or two of four decide it."""
    for values, median in (([1, 2, 3, 1e9, 1e9], 3), ([1, 2, 1e9, 1e9, 1e9], 1e9), ([1, 2, 1e9, 1e9], 5e8 + 1)):
        updates = [make_update(k, [float(value)]) for k, value in enumerate(values)]
        assert aggregate_once(make_component("agg", "median"), updates).tolist() == [median]


def test_the_logged_weight_is_the_share_of_middle_values() -> None:
    agg = make_component("agg", "median")
    collected = collect_updates(agg, [make_update(k, row) for k, row in enumerate(([1.0, 5], [2.0, 6], [3.0, 4]))])
    assert agg.direction(None, make_arrived(collected))[0].weights.tolist() == pytest.approx([0.5, 0.5, 0])
