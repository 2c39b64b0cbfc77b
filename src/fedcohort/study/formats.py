"""Write the numbers of a study's pages: with unit, sign and interval."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from fedcohort.report.table import EMPTY_CELL
from fedcohort.results.difference import Difference, Mean
from fedcohort.results.headroom import ShareClosed
from fedcohort.results.metric import find_metric_unit
from fedcohort.study.definition import Study
from fedcohort.study.verdict import MethodVerdict, SettingVerdict

SIGN_MARKS = {1: "▲", -1: "▼", 0: ""}
COST_NAMES = {"bytes": "bytes", "client_flops": "client FLOPs", "virtual_s": "virtual time", "joules": "energy"}


@dataclass(frozen=True)
class Format:
    """The format in which the values of a study's metric are written.

    Attributes:
        factor: factor by which shown values are multiplied.
        unit: unit of a difference, as "points".
        min_seeds: number of seeds for an interval; that of two seeds exceeds the range of the metric.
    """

    factor: float
    unit: str
    min_seeds: int

    def mean(self, value: Mean | Difference) -> str:
        """Format a mean with its 95 % interval: `40.2 [36.8, 43.6]`."""
        return self._format_interval(value, ".1f")

    def difference(self, value: Mean | Difference) -> str:
        """Format a difference with its 95 % interval: `+1.2 [-0.3, 2.1]`."""
        return self._format_interval(value, "+.1f")

    def signed(self, value: float) -> str:
        """Format a value with its sign: `+1.2`."""
        return f"{self._scale_and_round(value):+.1f}" if math.isfinite(value) else EMPTY_CELL

    def size(self, value: float) -> str:
        """Format the size of a difference with its unit: `1 point` or `2.5 points`."""
        scaled_size = round(value * self.factor, 6)
        return f"{scaled_size:g} {self.unit.removesuffix('s') if scaled_size == 1 else self.unit}"

    def _format_interval(self, value: Mean | Difference, number_format: str) -> str:
        if not math.isfinite(value.mean):
            return EMPTY_CELL
        mean_text = f"{self._scale_and_round(value.mean):{number_format}}"
        if not math.isfinite(value.half) or value.n < self.min_seeds:
            return mean_text
        return f"{mean_text} [{self._scale_and_round(value.low):.1f}, {self._scale_and_round(value.high):.1f}]"

    def _scale_and_round(self, value: float) -> float:
        return round(value * self.factor, 1) + 0.0  # no -0.0


def choose_format(study: Study, metric: str) -> Format:
    """Return the format of a study; values without a unit are shown in hundredths."""
    unit = find_metric_unit(metric)
    factor, name = (unit.factor, unit.difference) if unit.name else (100.0, "hundredths")
    return Format(factor, name, study.rules.seeds)


def format_share(share: ShareClosed | None) -> str:
    """Format a share of the headroom with its interval: `31 % [12, 45]`."""
    return f"{100 * share.share:.0f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]" if share else EMPTY_CELL


def format_rank(rank: float) -> str:
    """Format a rank: `3.2`, or `3` for a whole number."""
    return f"{rank:.1f}".removesuffix(".0") if math.isfinite(rank) else EMPTY_CELL


def format_count(n: int, singular_noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 seed`, `2 seeds`."""
    return f"{n} {singular_noun}{'s' * (n != 1)}"


def join_first_texts(texts: Sequence[str], n: int) -> str:
    """Return the first n texts and the number of further texts: `a, b and 3 more`."""
    return ", ".join(texts[:n]) + (f" and {len(texts) - n} more" if len(texts) > n else "")


def format_range(integers: Iterable[int]) -> str:
    """Format the smallest and the largest number: `3 to 5`, or `5` if all are equal."""
    sorted_numbers = sorted(set(integers))
    return " to ".join(dict.fromkeys((str(sorted_numbers[0]), str(sorted_numbers[-1])))) if sorted_numbers else "no"


def relative_costs(method: MethodVerdict, base: MethodVerdict | None) -> list[tuple[str, str]]:
    """Return the mean costs of a run over the baseline's that differ from 1.00, as `("3.07", "bytes")`."""
    if base is None:
        return []
    ratios = {name: method.costs[cost] / base.costs[cost] for cost, name in COST_NAMES.items() if base.costs[cost] > 0}
    return [(ratio_text, name) for name, ratio in ratios.items() if (ratio_text := f"{ratio:.2f}") != "1.00"]


def power_of(settings: Iterable[SettingVerdict]) -> dict[str, float] | None:
    """Return medians over settings of the seeds that a t-test needs, and of the difference that present seeds detect.

    Returns:
        needed: number of seeds that show the difference `win.worth`.
        n: present number of seeds.
        detectable: difference that the present seeds show, in the metric's own unit.
        None if no spread is known.
    """
    setting_powers = [setting.power for setting in settings if setting.power.seeds_needed]
    if not setting_powers:
        return None
    return {
        "needed": math.ceil(median(setting_power.seeds_needed or 0 for setting_power in setting_powers)),
        "n": math.ceil(median(setting_power.n for setting_power in setting_powers)),
        "detectable": median(setting_power.detectable for setting_power in setting_powers),
    }
