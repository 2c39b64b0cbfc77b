"""Write the numbers of a study's pages: with unit, sign and interval."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from fedcohort.report.comparison.tables import format_mean
from fedcohort.report.table import EMPTY_CELL
from fedcohort.results.difference import Difference, Mean
from fedcohort.results.headroom import HeadroomShare
from fedcohort.results.metric import find_metric_unit
from fedcohort.study.definition import Study
from fedcohort.study.verdict import MethodVerdict, SettingVerdict

UNITS_IN_HUNDREDTHS = {"": "hundredths", "nats": "hundredths of a nat"}  # name of a difference by unit of the metric
MARK_BY_SIGN = {1: "▲", -1: "▼", 0: ""}
COST_NAMES = {"bytes": "bytes", "client_flops": "client FLOPs", "virtual_s": "virtual time", "joules": "energy"}


@dataclass(frozen=True)
class MetricFormat:
    """The format in which the values of a study's metric are written.

    Attributes:
        factor: factor by which shown values are multiplied.
        unit: unit of a difference, as "points".
        min_seeds: smallest number of seeds for an interval; the interval of two seeds exceeds the range of the metric.
    """

    factor: float
    unit: str
    min_seeds: int

    def format_mean(self, estimate: Mean | Difference) -> str:
        """Format `estimate`, in the metric's own unit, with its 95 % interval: `40.2 [36.8, 43.6]`.

        The interval is left out below `min_seeds`; the text is "–" if the mean is not finite.
        """
        return self._format_interval(estimate, "z.1f")

    def format_diff(self, estimate: Mean | Difference) -> str:
        """Format the difference `estimate` like `format_mean`, with the sign of the mean: `+1.2 [-0.3, 2.1]`."""
        return self._format_interval(estimate, "+z.1f")

    def format_signed_value(self, metric_value: float) -> str:
        """Format `metric_value`, in the metric's own unit, with its sign: `+1.2`; "–" if it is not finite."""
        return f"{metric_value * self.factor:+z.1f}" if math.isfinite(metric_value) else EMPTY_CELL

    def format_difference_size(self, metric_value: float) -> str:
        """Format the size `metric_value` of a difference, in the metric's own unit: `1 point` or `2.5 points`."""
        scaled_size = round(metric_value * self.factor, 6)
        unit = (
            self.unit.replace("points", "point").replace("hundredths", "hundredth") if scaled_size == 1 else self.unit
        )
        return f"{scaled_size:g} {unit}"

    def _format_interval(self, estimate: Mean | Difference, number_format: str) -> str:
        if not math.isfinite(estimate.mean):
            return EMPTY_CELL
        mean_text = format_mean(estimate, self.factor, number_format)
        return mean_text if estimate.n >= self.min_seeds else mean_text.partition(" ")[0]


def choose_metric_format(study: Study, metric: str) -> MetricFormat:
    """Return the format for the study's values of `metric`; losses and values without a unit are in hundredths."""
    metric_unit = find_metric_unit(metric)
    factor = 100.0 if metric_unit.name in UNITS_IN_HUNDREDTHS else metric_unit.factor
    return MetricFormat(
        factor, UNITS_IN_HUNDREDTHS.get(metric_unit.name, metric_unit.difference), study.rules.min_seeds
    )


def format_headroom_share(share: HeadroomShare | None) -> str:
    """Format a share of the headroom with its interval: `31 % [12, 45]`; "–" for None."""
    return f"{100 * share.share:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]" if share else EMPTY_CELL


def format_rank(rank: float) -> str:
    """Format a rank: `3.2`, `3` for a whole number, or "–" for NaN."""
    return f"{rank:.1f}".removesuffix(".0") if math.isfinite(rank) else EMPTY_CELL


def join_first_texts(listed_texts: Sequence[str], n: int) -> str:
    """Return the first `n` of the texts, and the number of further texts: `a, b and 3 more`."""
    return ", ".join(listed_texts[:n]) + (f" and {len(listed_texts) - n} more" if len(listed_texts) > n else "")


def format_integer_range(integers: Iterable[int]) -> str:
    """Format the smallest and the largest of `integers`: `3 to 5`, `5` if all are equal, or `no` for none."""
    sorted_integers = sorted(set(integers))
    return " to ".join(dict.fromkeys((str(sorted_integers[0]), str(sorted_integers[-1])))) if sorted_integers else "no"


def find_cost_ratios(method: MethodVerdict, baseline: MethodVerdict | None) -> list[tuple[str, str]]:
    """Return a method's mean costs as multiples of the baseline's, as `("3.07", "bytes")`; those of 1.00 are left out.

    Args:
        method: verdict on the method in a setting.
        baseline: verdict on the baseline there; None gives no ratio.
    """
    if baseline is None:
        return []
    cost_names = [cost for cost in COST_NAMES if baseline.costs[cost] > 0]
    cost_ratio_texts = {COST_NAMES[cost]: f"{method.costs[cost] / baseline.costs[cost]:.2f}" for cost in cost_names}
    return [(ratio_text, cost_label) for cost_label, ratio_text in cost_ratio_texts.items() if ratio_text != "1.00"]


def summarise_power(settings: Iterable[SettingVerdict]) -> dict[str, float] | None:
    """Return medians over settings of the seeds that a t-test needs, and of the difference that present seeds detect.

    Returns:
        A dictionary, or None if no setting has a known spread. `needed` is the number of seeds that show the difference
        `verdict.detectable_difference`, `n` the present number, and `detectable` the difference that the present seeds
        show, in the metric's own unit.
    """
    setting_powers = [setting.power for setting in settings if setting.power.seeds_needed]
    if not setting_powers:
        return None
    return {
        "needed": math.ceil(median(setting_power.seeds_needed or 0 for setting_power in setting_powers)),
        "n": math.ceil(median(setting_power.n for setting_power in setting_powers)),
        "detectable": median(setting_power.detectable for setting_power in setting_powers),
    }
