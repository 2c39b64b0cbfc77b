"""The cost to a target, and the speed-up over the baseline: rounds, virtual seconds, bytes or client FLOPs.

    T  cost at the first evaluation at which the mean of the last w evaluations is at least the target, up to 1e-6.
       The window is full, and w is the number of evaluations that the run's result averages (`run.find_late_window`).
    C  cost at the end of a run that never met the target: T > C. For a run that passes its limit of virtual time, the
       end is this limit for virtual seconds, and the last evaluation within it for other costs.
    h(s)  smallest C among the runs of the pair that never met the target; infinite if both met it.
    r(s)  log min(T_b, h) - log min(T_m, h);  speed-up = exp(mean r), interval and p of the paired t-test on r.

The first crossing of a single evaluation rewards noise: with equal mean curves and three times the noise, 57 to 72 % of
comparisons were significant. `window=1` is that rule, which reproduces tables of papers. The speed-up is finite for any
censoring, and conservative (Royston and Parmar 2013, BMC Med Res Methodol). Signed ranks have no power below six seeds,
and the log-rank test ignores the pairing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.results.difference import Difference, summarise_differences
from fedcohort.results.metric import is_accuracy
from fedcohort.results.run import Evaluations, Numbers
from fedcohort.results.verdict import BETTER, FASTER, SLOWER, TARGET_UNREACHED, WORSE, Rules, name_verdict, tost_p_value

DEFAULT_TARGET_LEVEL = 0.95  # of the baseline's mean result, the default target
TARGET_TOLERANCE = 1e-6  # of the target
BASELINE, BEST_OF_PREFIX = "baseline", "best_of:"  # values of the option `target`, other than a number
CROSSING_RULES = ("window", "first")
EXACT_RATIO, RATIO_LOWER_BOUND, RATIO_UPPER_BOUND, RESTRICTED_RATIO = "", ">=", "<=", "restricted"


@dataclass(frozen=True)
class Target:
    """The value of the metric that a run has to reach.

    Attributes:
        value: the target, in the metric's unit; None for `best_of` or the baseline's level.
        best_of: conditions whose best result on each seed is the target.
        level: share of the way to the baseline's mean result, from 0, or from the untrained model's value for a loss;
            in (0, 1]. It is used without `value` and `best_of`.
        crossing: "window" if the mean over as many evaluations as a run's result is computed from must reach the
            target, or "first" if a single evaluation must.
    """

    value: float | None = None
    best_of: Sequence[str] = ()
    level: float = DEFAULT_TARGET_LEVEL
    crossing: str = "window"

    def __post_init__(self) -> None:
        ranges.number("level", self.level, "(0, 1]")
        ranges.choice("crossing", self.crossing, *CROSSING_RULES)


@dataclass(frozen=True)
class Cost:
    """The cost of a run until it met the target.

    Attributes:
        value: cost at the first evaluation that met the target, or at the end of a run that never met it; rounds,
            seconds, bytes or FLOPs.
        is_met: whether the run met the target.
    """

    value: float
    is_met: bool


@dataclass(frozen=True)
class MedianCost:
    """The median cost over seeds, where a run that never met the target comes after all others.

    Attributes:
        value: the median; for an even number of runs the geometric mean of the two middle costs. Infinite if one of
            these runs never met the target.
        lower: the lower middle cost, at the end of a run that never met the target; the median is above it if `value`
            is infinite.
        n_met: number of runs that reached the target.
        n: number of runs.
    """

    value: float
    lower: float
    n_met: int
    n: int


def parse_target(text: str, metric: str, level: float = DEFAULT_TARGET_LEVEL, crossing: str = "window") -> Target:
    """Return the target that the option `target` names. Raises `OptionError` for other texts.

    Args:
        text: a number, `baseline`, or `best_of:` and conditions, as "best_of:random,oort".
        metric: name of the metric; a target of an accuracy must be in [0, 1].
        level: `Target.level` for `baseline`.
        crossing: `Target.crossing`.
    """
    if text == BASELINE:
        return Target(level=level, crossing=crossing)
    if text.startswith(BEST_OF_PREFIX) and (
        conditions := [name for name in text.removeprefix(BEST_OF_PREFIX).split(",") if name]
    ):
        return Target(best_of=conditions, crossing=crossing)
    try:
        target_value = float(text)
    except ValueError:
        target_value = math.nan
    if not math.isfinite(target_value):
        allowed_text = f"a number, {BASELINE}, or {BEST_OF_PREFIX} and conditions, as {BEST_OF_PREFIX}random,oort"
        raise ranges.range_error("target", allowed_text, text)
    if is_accuracy(metric) and not 0 <= target_value <= 1:
        raise ranges.range_error("target", f"a number in [0, 1], as {metric} is a share (0.8 is 80 %)", text)
    return Target(target_value, crossing=crossing)


def find_crossing(steps: Numbers, values: Numbers, target: float, window: int = 1, sign: int = 1) -> int | None:
    """Return the index of the first evaluation at which the mean of the last `window` values meets the target, or None.

    Args:
        steps: rounds of the evaluations, increasing; round 0, the untrained model, never counts.
        values: the metric at these rounds.
        target: the target, in the unit of the metric.
        window: number of evaluations that are averaged.
        sign: 1 if a larger metric is better, else -1.
    """
    trained_positions = np.flatnonzero(np.asarray(steps, dtype=float) > 0)
    if len(trained_positions) < window:
        return None
    window_values = np.lib.stride_tricks.sliding_window_view(np.asarray(values, dtype=float)[trained_positions], window)
    met_indices = np.flatnonzero(sign * window_values.mean(axis=-1) >= sign * target - TARGET_TOLERANCE * abs(target))
    return int(trained_positions[met_indices[0] + window - 1]) if len(met_indices) else None


def find_costs_to_target(run: Evaluations, target: float, window: int = 1, sign: int = 1) -> dict[str, Cost]:
    """Return the costs of a run until it met the target, or until its end, by name.

    Evaluations after the run's limit of virtual time do not count. A run that missed the target within the limit took
    longer than the limit, and spent more than at its last evaluation within it.

    Args:
        run: the evaluations of the run, one or more.
        target: the target, in the metric's unit; NaN for a target that no run meets.
        window: number of evaluations that are averaged.
        sign: 1 if a larger metric is better, else -1.
    """
    n_counted = int((run.costs["virtual_s"] <= run.clock_s).sum()) if run.has_clock else len(run.steps)
    crossing_index = find_crossing(run.steps[:n_counted], run.values[:n_counted], target, window, sign)
    if crossing_index is not None:
        return {cost_name: Cost(float(costs[crossing_index]), is_met=True) for cost_name, costs in run.costs.items()}
    end_costs = {cost_name: float(costs[n_counted - 1]) if n_counted else 0.0 for cost_name, costs in run.costs.items()}
    if n_counted < len(run.steps):
        end_costs["virtual_s"] = run.clock_s
    return {cost_name: Cost(cost, is_met=False) for cost_name, cost in end_costs.items()}


def find_median_cost(costs: Sequence[Cost]) -> MedianCost:
    """Return the median over seeds of `costs`, one for each run; NaN without any."""
    if not costs:
        return MedianCost(math.nan, math.nan, 0, 0)
    sorted_costs = sorted(costs, key=lambda cost: (not cost.is_met, cost.value))
    lower_middle, upper_middle = sorted_costs[(len(costs) - 1) // 2], sorted_costs[len(costs) // 2]
    median_value = math.sqrt(lower_middle.value * upper_middle.value) if upper_middle.is_met else math.inf
    return MedianCost(median_value, lower_middle.value, sum(cost.is_met for cost in costs), len(costs))


@dataclass(frozen=True)
class SpeedUp:
    """How many times as fast as the baseline a method is.

    Attributes:
        ratio: baseline's cost divided by the method's, geometric mean over pairs; NaN if only one run of a pair cost 0.
        low: lower end of the 95 % interval; NaN without an interval.
        high: upper end of the 95 % interval; NaN without an interval.
        p: p-value of the paired t-test on the logarithms.
        n: number of pairs.
        n_unmet: number of pairs in which neither run met the target within the cost that both spent; their ratio is 1.
        bound: EXACT_RATIO if all runs met the target. RATIO_LOWER_BOUND if only runs of the baseline ended before it,
            RATIO_UPPER_BOUND if only runs of the method did, RESTRICTED_RATIO if runs of both did.
        median: median ratio, where a run that never met the target comes after all others; NaN if not determined.
        log_ratios: paired differences of the logarithms.
    """

    ratio: float
    low: float
    high: float
    p: float
    n: int
    n_unmet: int
    bound: str
    median: float
    log_ratios: Difference

    @property
    def is_target_reached(self) -> bool:
        """Whether at least half of the pairs met the target, so that the ratio is informative."""
        return 2 * self.n_unmet <= self.n


def measure_speed_up(baseline_costs: Mapping[int, Cost], method_costs: Mapping[int, Cost]) -> SpeedUp:
    """Return the speed-up over the baseline on common seeds.

    Args:
        baseline_costs: cost of each run of the baseline until the target, by seed.
        method_costs: the method's costs, in the same unit.
    """
    common_seeds = sorted(set(baseline_costs) & set(method_costs))
    log_ratios, extreme_logs = dict[int, float](), list[float]()
    n_unmet, baseline_is_later, method_is_later = 0, False, False
    for seed in common_seeds:
        b, m = baseline_costs[seed], method_costs[seed]
        common_horizon = min((cost.value for cost in (b, m) if not cost.is_met), default=math.inf)
        b_met, m_met = (cost.is_met and cost.value <= common_horizon for cost in (b, m))
        baseline_cost, method_cost = min(b.value, common_horizon), min(m.value, common_horizon)
        log_ratios[seed] = 0.0 if baseline_cost == method_cost else math.nan
        if baseline_cost > 0 and method_cost > 0:
            log_ratios[seed] = math.log(baseline_cost) - math.log(method_cost)
        n_unmet += not b_met and not m_met
        baseline_is_later |= not b.is_met and m.is_met and m.value < common_horizon
        method_is_later |= not m.is_met and b.is_met and b.value < common_horizon
        extreme_logs.append(math.inf if m_met and not b_met else -math.inf if b_met and not m_met else log_ratios[seed])
    mean_log_ratio = summarise_differences(log_ratios, largest_value=1.0)
    ratio, low, high = (math.exp(value) for value in (mean_log_ratio.mean, mean_log_ratio.low, mean_log_ratio.high))
    bound_signs = {
        (False, False): EXACT_RATIO,
        (True, False): RATIO_LOWER_BOUND,
        (False, True): RATIO_UPPER_BOUND,
        (True, True): RESTRICTED_RATIO,
    }
    bound_sign = bound_signs[baseline_is_later, method_is_later]
    with np.errstate(invalid="ignore"):  # NaN if the two middle values are minus infinity and infinity
        median = float(np.exp(np.median(extreme_logs))) if extreme_logs else math.nan
    return SpeedUp(ratio, low, high, mean_log_ratio.p, mean_log_ratio.n, n_unmet, bound_sign, median, mean_log_ratio)


def judge_speed_up(speed_up: SpeedUp, p: float, rules: Rules) -> str:
    """Return the verdict on a speed-up, such as "faster".

    Args:
        speed_up: the speed-up over the baseline.
        p: its p-value after the correction for several tests.
        rules: significance level, smallest speed-up and number of seeds of a verdict.
    """
    if not speed_up.is_target_reached:
        return TARGET_UNREACHED
    log_rules = Rules(rules.alpha, math.log(rules.ratio), math.log(rules.ratio_margin), rules.min_seeds)
    p_equivalent = tost_p_value(speed_up.log_ratios.values, log_rules.equivalence_margin)
    verdict = name_verdict(speed_up.log_ratios.mean, p, p_equivalent, speed_up.n, log_rules)
    return {BETTER: FASTER, WORSE: SLOWER}.get(verdict, verdict)
