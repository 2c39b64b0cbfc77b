"""The trimmed mean: closed forms, and its reductions to the mean and to the median."""

from pathlib import Path

import pytest

from agg_harness import ROWS_WITH_ONE_FAR, aggregate_once, make_update
from config_options import make_component
from run_harness import startup_notices

UPDATES = [make_update(k, row, n=1 + k) for k, row in enumerate(ROWS_WITH_ONE_FAR)]


@pytest.mark.parametrize(
    ("beta", "mean"),
    [(0.2, [7 / 3, 1 / 3]), (0.0, [21.6, 10]), (0.4, [2, 0]), (0.19, [21.6, 10])],
)
def test_trimmed_means_by_hand(beta: float, mean: list[float]) -> None:
    """Of 1, 2, 2, 3, 100 without an extreme at each end 2, 2, 3 remain; 0 is the uniform mean, 0.4 the median."""
    assert aggregate_once(make_component("agg", "trimmed_mean", beta=beta), UPDATES).tolist() == pytest.approx(mean)


def test_a_share_of_whole_updates_is_not_rounded_down() -> None:
    """0.29 * 100 is 28.999999999999996 in floating point, and 29 updates are left out at each end."""
    updates = [make_update(k, [0.0 if k < 29 else 1.0]) for k in range(100)]
    assert aggregate_once(make_component("agg", "trimmed_mean", beta=0.29), updates, 100).tolist() == [1.0]


def test_one_value_remains_however_near_beta_is_to_one_half() -> None:
    """0.4999999999 * 2 rounds to 1, which would leave none of two values; their mean remains."""
    agg = make_component("agg", "trimmed_mean", beta=0.4999999999)
    assert aggregate_once(agg, UPDATES[:2]).tolist() == [1.5, 0.5]
    assert aggregate_once(agg, UPDATES[:4]).tolist() == [2, 0]


def test_a_notice_says_that_no_value_is_trimmed(tmp_path: Path) -> None:
    notice = "agg=trimmed_mean is the plain mean with agg.beta=0: choose agg.beta above 0"
    notices = [startup_notices("agg=trimmed_mean", f"agg.beta={beta}", f"paths.logs={tmp_path}") for beta in (0, 0.1)]
    assert [notice in lines for lines in notices] == [True, False]
