"""Units of metrics, and which way is better."""

import pytest

from fedcohort.errors import OptionError
from fedcohort.results.metric import MetricUnit, lower_is_better, rules_of, sign_of, unit_of


def test_the_better_direction_of_a_metric() -> None:
    lower = ("test/loss", "clients/loss_mean", "clients/acc_var", "time/virtual_s", "comm/up_bytes", "select/share_max")
    assert all(map(lower_is_better, lower))
    assert all(map(lower_is_better, ("attack/weight", "select/class_imbalance", "round/waited_s", "round/closed_s")))
    assert not any(map(lower_is_better, ("test/acc", "clients/acc_worst5", "clients/jain", "round/arrived")))
    assert (sign_of("test/acc"), sign_of("test/acc", "low"), sign_of("test/loss")) == (1, -1, -1)
    with pytest.raises(OptionError, match="better must be one of auto, high, low, got 'up'"):
        sign_of("test/acc", "up")


def test_units_of_metrics() -> None:
    assert unit_of("test/acc") == MetricUnit(100.0, "%")
    assert unit_of("test/acc").difference == "points"
    assert unit_of("clients/acc_var").name == "%²"
    assert unit_of("test/loss").difference == "nats"
    assert unit_of("comm/up_bytes", 3e9) == MetricUnit(1e-9, "GB")
    assert unit_of("select/share") == MetricUnit(1.0, "")


def test_only_accuracies_have_a_minimum_effect() -> None:
    assert rules_of("clients/acc_worst5").least == 0.005
    assert (rules_of("test/loss").least, rules_of("test/loss").worth) == (0.0, 0.0)
