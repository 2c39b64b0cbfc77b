"""Units of metrics, and which way is better."""

import pytest

from fedcohort.errors import OptionError
from fedcohort.results.metric import MetricUnit, choose_rules, find_metric_sign, find_metric_unit, lower_is_better


def test_the_better_direction_of_a_metric() -> None:
    lower = ("test/loss", "clients/loss_mean", "clients/acc_var", "time/virtual_s", "comm/up_bytes", "select/share_max")
    assert all(map(lower_is_better, lower))
    assert all(map(lower_is_better, ("attack/weight", "select/class_imbalance", "round/waited_s", "round/closed_s")))
    assert not any(map(lower_is_better, ("test/acc", "clients/acc_worst5", "clients/jain", "round/arrived")))
    assert (find_metric_sign("test/acc"), find_metric_sign("test/acc", "low"), find_metric_sign("test/loss")) == (
        1,
        -1,
        -1,
    )
    with pytest.raises(OptionError, match="better must be one of auto, high, low, got 'up'"):
        find_metric_sign("test/acc", "up")


def test_metrics_have_the_right_units() -> None:
    assert find_metric_unit("test/acc") == MetricUnit(100.0, "%")
    assert find_metric_unit("test/acc").difference == "points"
    assert find_metric_unit("clients/acc_var").name == "%²"
    assert find_metric_unit("test/loss").difference == "nats"
    assert find_metric_unit("comm/up_bytes", 3e9) == MetricUnit(1e-9, "GB")
    assert find_metric_unit("select/share") == MetricUnit(1.0, "")


def test_only_accuracies_have_a_minimum_effect() -> None:
    assert choose_rules("clients/acc_worst5").min_difference == 0.005
    assert (choose_rules("test/loss").min_difference, choose_rules("test/loss").detectable_difference) == (0.0, 0.0)
