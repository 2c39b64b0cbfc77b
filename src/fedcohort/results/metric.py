"""The unit of a metric, and whether larger or smaller values are better."""

import math
from dataclasses import dataclass
from pathlib import Path

import yaml

from fedcohort import ranges, units
from fedcohort.results.verdict import Rules

LOWER_IS_BETTER_ENDINGS = (  # endings of metrics whose smaller values are better
    *("loss", "_var", "share_max", "dropped_nonfinite", "dropped_step", "class_imbalance"),
    *("waited_s", "closed_s", "announced_s"),
)
# prefixes of others: the weight of attackers is a cost, too
COST_PREFIXES = ("time/", "comm/", "comp/", "energy/", "privacy/", "attack/")
BETTER_CHOICES = ("auto", "high", "low")
METRIC_NAMES = yaml.safe_load(Path(__file__).with_name("metrics.yaml").read_text())
# for a metric without a known scale
NO_EFFECT_RULES = Rules(min_difference=0.0, equivalence_margin=0.0, detectable_difference=0.0)


@dataclass(frozen=True)
class MetricUnit:
    """The unit in which the values of a metric are shown.

    Attributes:
        factor: factor by which values are multiplied.
        name: symbol behind the number, as "%"; "" without a unit.
    """

    factor: float
    name: str

    @property
    def difference(self) -> str:
        """The unit of a difference, which is points between two percentages."""
        return "points" if self.name == "%" else self.name


def find_metric_unit(metric: str, largest_value: float = 0.0) -> MetricUnit:
    """Return the unit of `metric`; `largest_value`, the largest shown, sets the prefix of bytes, FLOPs and joules."""
    metric_name = metric.rpartition("/")[2]
    if is_accuracy(metric):
        return MetricUnit(100.0, "%")
    if metric_name == "acc_var":
        return MetricUnit(1.0, "%²")
    if "loss" in metric_name:
        return MetricUnit(1.0, "nats")
    if metric.startswith("time/"):
        return MetricUnit(1.0, "s")
    for metric_prefix, unit_name in (("comm/", "B"), ("comp/", "FLOP"), ("energy/", "J")):
        if metric.startswith(metric_prefix):
            unit_prefix_index = min(max(int(math.log10(largest_value) // 3), 0), 5) if largest_value > 0 else 0
            return MetricUnit(1000.0**-unit_prefix_index, units.METRIC_PREFIXES[unit_prefix_index] + unit_name)
    return MetricUnit(1.0, "")


def label_metric(metric: str) -> str:
    """Return the label of `metric` in figures, such as "test accuracy" of `test/acc`."""
    return str(METRIC_NAMES["figures"].get(metric, metric))


def is_accuracy(metric: str) -> bool:
    """Return whether `metric` is an accuracy in [0, 1], shown in per cent."""
    metric_name = metric.rpartition("/")[2]
    return metric_name.startswith("acc") and metric_name != "acc_var"


def lower_is_better(metric: str) -> bool:
    """Return whether smaller values of `metric` are better, by its name."""
    has_lower_name = metric.endswith(LOWER_IS_BETTER_ENDINGS) or "loss" in metric.rpartition("/")[2]
    return has_lower_name or metric.startswith(COST_PREFIXES)


def find_metric_sign(metric: str, better: str = "auto") -> int:
    """Return -1 if smaller values of `metric` are better, else 1.

    `better` is `high`, `low`, or `auto`, by the metric's name. Raises `OptionError` for other values.
    """
    ranges.choice("better", better, *BETTER_CHOICES)
    return -1 if better == "low" or (better == "auto" and lower_is_better(metric)) else 1


def choose_rules(metric: str) -> Rules:
    """Return the default rules of a verdict on `metric`: minimum effects in points for an accuracy, none for others."""
    return Rules() if is_accuracy(metric) else NO_EFFECT_RULES
