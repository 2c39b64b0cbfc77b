"""Average the curves of several seeds: the mean with its 95 % interval, by round or by cost, or minus the baseline's.

A difference is paired: for each seed, the curve minus the baseline's at the same round or cost. Curves are interpolated
linearly between evaluations, because runs are evaluated at different costs.

The vertical scale of differences is logarithmic beyond a point where a linear one would hide a point. Early rounds
differ most, and a method may collapse: next to 50 points, a difference of one point is not visible.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.results.compare import Options
from fedcohort.results.difference import run_t_test
from fedcohort.results.matching.question import ComparisonAnswer
from fedcohort.results.run import Evaluations
from fedcohort.results.verdict import Rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUNDS_AXIS = "round"  # column of the curves
LOG_SCALE_RATIO = 10.0  # of the largest difference to the one worth detecting, beyond which the scale is logarithmic
N_CURVE_POINTS = 200  # points at which runs with different costs are compared
PointValues = Float64[np.ndarray, "_n"]
RunsBySeed = Mapping[int, Evaluations]


@dataclass(frozen=True)
class MeanCurve:
    """The mean of several seeds' curves.

    Attributes:
        x: rounds or costs, [points].
        mean: mean over seeds, [points].
        half_width: half the width of the 95 % interval, [points]; NaN for one seed.
    """

    x: PointValues
    mean: PointValues
    half_width: PointValues


EMPTY_CURVE = MeanCurve(np.empty(0), np.empty(0), np.empty(0))


def describe_estimate(answer: ComparisonAnswer) -> str:
    """Return what the figures of `answer` show: a mean with its interval, or one seed, which has none."""
    return "one seed" if answer.has_one_seed else "mean and 95 % interval over seeds"


def average_curves(run_by_seed: RunsBySeed, axis: str) -> MeanCurve:
    """Return the mean curve of the runs over seeds, by `axis`, which is `round` or the name of a cost."""
    x = _choose_curve_points(list(run_by_seed.values()), axis)
    return _average_seed_curves(x, [_interpolate_metric(run, axis, x) for run in run_by_seed.values()])


def average_difference(run_by_seed: RunsBySeed, baseline_runs: RunsBySeed, axis: str, options: Options) -> MeanCurve:
    """Return the mean difference to the baseline over common seeds, positive where the curve is better.

    Args:
        run_by_seed: evaluations of a method, by seed.
        baseline_runs: evaluations of the baseline, by seed.
        axis: `round`, or the name of a cost.
        options: options of the comparison, which say whether high values are better.
    """
    run_pairs = [(run_by_seed[seed], baseline_runs[seed]) for seed in sorted(set(run_by_seed) & set(baseline_runs))]
    x = _choose_curve_points([run for seed_pair in run_pairs for run in seed_pair], axis)
    return _average_seed_curves(
        x,
        [
            options.sign * (_interpolate_metric(run, axis, x) - _interpolate_metric(baseline_run, axis, x))
            for run, baseline_run in run_pairs
        ],
    )


def _choose_curve_points(runs: Sequence[Evaluations], axis: str) -> PointValues:
    """Return the rounds that all of `runs` evaluated, or equidistant costs in the range that all runs cover, [points].

    `axis` is `round` or the name of a cost.
    """
    if not runs:
        return np.empty(0)
    if axis == ROUNDS_AXIS:
        return np.array(sorted(set.intersection(*(set(run.steps.tolist()) for run in runs))))
    costs_by_run = [run.costs[axis] for run in runs]
    range_start, range_end = (
        max(float(costs[0]) for costs in costs_by_run),
        min(float(costs[-1]) for costs in costs_by_run),
    )
    return np.linspace(range_start, range_end, N_CURVE_POINTS) if range_end > range_start else np.empty(0)


def _interpolate_metric(run: Evaluations, axis: str, x: PointValues) -> PointValues:
    return np.asarray(np.interp(x, run.steps if axis == ROUNDS_AXIS else run.costs[axis], run.values))


def _average_seed_curves(x: PointValues, seed_curves: Sequence[PointValues]) -> MeanCurve:
    if not len(x) or not seed_curves:
        return EMPTY_CURVE
    values_by_seed = np.stack(seed_curves, axis=1)  # [points, seeds]
    half_width = np.full(len(x), np.nan)
    if values_by_seed.shape[1] > 1:
        with np.errstate(divide="ignore", invalid="ignore"):  # equal values have no spread
            half_width = run_t_test(values_by_seed)[0]
    return MeanCurve(x, values_by_seed.mean(axis=1), half_width)


def find_linear_limit(mean_curves: Iterable[MeanCurve], rules: Rules) -> float:
    """Return the difference beyond which the scale of `mean_curves` is logarithmic; 0 for a linear scale.

    It is the difference `rules.detectable_difference` that is worth detecting, in the metric's own unit.
    """
    largest_difference = max(
        float(np.max(np.abs(curve.mean) + np.nan_to_num(curve.half_width))) for curve in mean_curves
    )
    return rules.detectable_difference if largest_difference > LOG_SCALE_RATIO * rules.detectable_difference else 0.0


def set_vertical_scale(panels: "Sequence[Axes]", linear_limit: float) -> None:
    """Make the vertical axes of `panels` logarithmic beyond plus and minus `linear_limit`; 0 leaves them linear."""
    from matplotlib.ticker import SymmetricalLogLocator

    for axes in panels if linear_limit else ():
        axes.set_yscale("symlog", linthresh=linear_limit)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear_limit))
        axes.yaxis.set_major_formatter("{x:g}")
