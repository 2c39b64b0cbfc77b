"""Compare costs with the baseline's: to a target, and by the end of the runs.

Costs are rounds, virtual seconds, bytes, client FLOPs and joules. The target of a setting is a value, a share of the
way to the baseline's mean result, or, on each seed, the best result of some conditions. The definitions are those of
`target`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results import compare
from fedcohort.results import target as target_costs
from fedcohort.results.compare import Cell, Options, RunsByCell
from fedcohort.results.frame import COST_COLUMNS, RunFrames
from fedcohort.results.metric import is_accuracy
from fedcohort.results.run import Evaluations, count_averaged_evaluations, result_of_run
from fedcohort.results.target import BASELINE, BEST_OF_PREFIX, Cost, MedianCost, SpeedUp, Target

ROUNDS_AXIS = "rounds"
COST_AXES = (*COST_COLUMNS, ROUNDS_AXIS)


@dataclass(frozen=True)
class CostResult:
    """The cost to the target of one condition in one setting, in one unit: rounds, seconds, bytes, FLOPs or joules.

    Attributes:
        costs: cost of each run, by seed.
        median: median cost over seeds.
        speed_up: speed-up over the baseline; None for the baseline itself, and if equal seeds give other data
            than in the baseline's runs.
        p: p-value of the speed-up after Holm's correction over the methods of the setting; NaN without a test.
        verdict: verdict on the speed-up; "" without one.
    """

    costs: Mapping[int, Cost]
    median: MedianCost
    speed_up: SpeedUp | None = None
    p: float = math.nan
    verdict: str = ""


@dataclass(frozen=True)
class CostComparison:
    """The costs of runs until they met a target, compared with the baseline's.

    Attributes:
        axis: the cost that the main verdicts compare, one of `COST_AXES`.
        targets: target by setting and seed, in the metric's unit.
        results: costs by axis, and by setting and condition; an axis that some run did not log is left out.
    """

    axis: str
    targets: Mapping[str, Mapping[int, float]]
    results: Mapping[str, Mapping[Cell, CostResult]]


@dataclass(frozen=True)
class TotalCost:
    """The total cost of the runs of a condition in a setting: seconds, bytes, FLOPs or joules.

    Attributes:
        mean: mean over seeds.
        ratio: sum over the common seeds, divided by the baseline's sum; NaN without a baseline.
    """

    mean: float
    ratio: float


def compare_cost(frames: RunFrames, options: Options, target: Target, axis: str = "virtual_s") -> CostComparison:
    """Compare the cost to the target with the baseline's, along every axis that all runs logged.

    Args:
        frames: finished runs and their evaluations.
        options: metric, baseline and rules of the comparison.
        target: the value that runs have to reach.
        axis: the cost that the main verdicts compare, one of `COST_AXES`.

    Raises:
        OptionError: an `axis` that is unknown or that a run did not log; or a target that names an unknown condition,
            or needs a baseline where there is none.
    """
    ranges.choice("axis", axis, *COST_AXES)
    runs, cell_runs = frames.runs, compare.group_runs_by_cell(frames, options)
    targets = _find_targets(cell_runs, options, target)
    axes = [name for name in COST_COLUMNS if name in runs and (runs[name] > 0).all()] + [ROUNDS_AXIS]
    if axis not in axes:
        runs_without_cost = runs[~(runs[axis] > 0)] if axis in runs else runs
        name = PurePath(str(runs_without_cost["folder"].iloc[0])).name or runs_without_cost["run"].iloc[0]
        reason = "virtual time does not pass with device=instant" if axis == "virtual_s" else "it was not logged"
        raise OptionError(f"axis={axis} has no value for run {name}: {reason}. Set axis to one of {', '.join(axes)}")
    costs: dict[str, dict[Cell, dict[int, Cost]]] = {name: {cell: {} for cell in cell_runs} for name in axes}
    for cell, run_by_seed in cell_runs.items():
        for seed, run in run_by_seed.items():
            if (target_value := targets[cell[0]].get(seed)) is not None:
                for name, cost in measure_costs(run, target_value, options, target).items():
                    if name in axes:
                        costs[name][cell][seed] = cost
    oracle_cells = compare.list_oracle_cells(frames)
    cost_results = {name: compare_axis_costs(costs[name], oracle_cells, options) for name in axes}
    return CostComparison(axis, targets, cost_results)


def measure_costs(run: Evaluations, target_value: float, options: Options, target: Target) -> dict[str, Cost]:
    """Return what `run` spent until it met `target_value`, by cost, such as `virtual_s`; {} without evaluations.

    `options` has the sign and the horizon. `target.crossing` says whether a mean over evaluations or a single one
    counts.
    """
    if not len(run.steps):
        return {}
    window_size = count_averaged_evaluations(run, options.horizon) if target.crossing == "window" else 1
    run = replace(run, costs={**run.costs, ROUNDS_AXIS: run.steps})
    return target_costs.find_costs_to_target(run, target_value, window_size, options.sign)


def compare_axis_costs(
    costs: Mapping[Cell, Mapping[int, Cost]], untested_cells: Collection[Cell], options: Options
) -> dict[Cell, CostResult]:
    """Compare the costs to a target with the baseline's, along one axis: rounds, seconds, bytes, FLOPs or joules.

    Args:
        costs: cost of each run until the target, by cell (setting, condition) and seed.
        untested_cells: cells, such as those of oracles, whose p-values Holm's correction ignores.
        options: baseline and rules of the comparison.
    """
    speed_ups = {
        cell: target_costs.measure_speed_up(baseline_costs, cost_by_seed)
        for cell, cost_by_seed in costs.items()
        if cost_by_seed and (baseline_costs := compare.find_baseline_value(costs, cell, options))
    }
    p_values = compare.correct_p_values(speed_ups, untested_cells, options.rules)
    cost_results = {}
    for cell, cost_by_seed in costs.items():
        cost_results[cell] = CostResult(cost_by_seed, target_costs.find_median_cost(list(cost_by_seed.values())))
        if (speed_up := speed_ups.get(cell)) is not None:
            verdict = target_costs.judge_speed_up(speed_up, p_values[cell], options.rules)
            cost_results[cell] = replace(cost_results[cell], speed_up=speed_up, p=p_values[cell], verdict=verdict)
    return cost_results


def _find_targets(runs: RunsByCell, options: Options, target: Target) -> dict[str, dict[int, float]]:
    """Return the target of each setting and seed, in the metric's unit; a seed that has none is left out.

    `runs` are evaluations by cell (setting, condition) and seed. Raises `OptionError` for a `target` that names an
    unknown condition, or needs a baseline where there is none.
    """
    results = compare.measure_results(runs, options)
    conditions = list(dict.fromkeys(condition for _, condition in results))
    if missing_conditions := [name for name in target.best_of if name not in conditions]:
        raise ranges.range_error(
            "target",
            f"{BEST_OF_PREFIX} and one or more of {', '.join(conditions)}",
            f"{BEST_OF_PREFIX}{','.join(missing_conditions)}",
        )
    if target.value is None and not target.best_of and options.baseline is None:
        raise ranges.range_error("target", "a number, or best_of: and conditions, as there is no baseline", BASELINE)
    targets: dict[str, dict[int, float]] = {}
    for setting in dict.fromkeys(setting for setting, _ in results):
        run_results = [results.get((setting, name), {}) for name in target.best_of or conditions]
        seeds, best = (sorted({seed for values in run_results for seed in values}), max if options.sign > 0 else min)
        if target.best_of:
            values_by_seed = {seed: [values.get(seed, math.nan) for values in run_results] for seed in seeds}
            targets[setting] = {seed: best(row) for seed, row in values_by_seed.items() if all(map(math.isfinite, row))}
        else:
            target_value = find_target_value(runs.get((setting, str(options.baseline)), {}).values(), options, target)
            targets[setting] = dict.fromkeys(seeds, target_value) if math.isfinite(target_value) else {}
    return targets


def find_target_value(baseline_runs: Collection[Evaluations], options: Options, target: Target) -> float:
    """Return the target of a setting in the metric's unit; NaN if it is not known.

    It is `target.value`, or the share `target.level` of the way from 0 (for a loss, from that of the untrained model)
    to the baseline's mean finite result. `baseline_runs` are the baseline's evaluations in the setting, `options`
    defines a result, and `target` has no `best_of`. One target holds for all seeds: a separate one for each seed would
    make an equal method look 3 to 5 % faster.
    """
    if target.value is not None:
        return target.value
    results = [result_of_run(run, options.result, options.horizon, options.sign) for run in baseline_runs]
    finite_results = [result for result in results if math.isfinite(result)]
    untrained_values = [float(value) for run in baseline_runs for value in run.values[run.steps == 0]]
    start = 0.0 if is_accuracy(options.metric) else float(np.mean(untrained_values)) if untrained_values else math.nan
    return start + target.level * (float(np.mean(finite_results)) - start) if finite_results else math.nan


def sum_costs(frames: RunFrames, options: Options) -> dict[str, dict[Cell, TotalCost]]:
    """Return the mean cost over a cell's runs and its ratio to the baseline's, by name of the cost and by cell.

    A cell is (setting, condition). Costs that no run logged are left out.

    Args:
        frames: finished runs with their costs.
        options: options of the comparison, with the baseline; cells that form no pairs with it have no ratio.
    """
    costs: dict[str, dict[Cell, TotalCost]] = {}
    for cost_name in (name for name in COST_COLUMNS if name in frames.runs and (frames.runs[name] > 0).any()):
        cost_by_cell: dict[Cell, dict[int, float]] = {}
        for run in frames.runs.to_dict("records"):
            cost_by_cell.setdefault((run["setting"], run["condition"]), {})[run["seed"]] = run[cost_name]
        costs[cost_name] = {}
        for cell, cost_by_seed in cost_by_cell.items():
            baseline_costs = compare.find_baseline_value(cost_by_cell, cell, options) or {}
            mean_cost = float(np.mean(list(cost_by_seed.values())))
            costs[cost_name][cell] = TotalCost(mean_cost, compute_relative_cost(cost_by_seed, baseline_costs))
    return costs


def compute_relative_cost(cost_by_seed: Mapping[int, float], baseline_costs: Mapping[int, float]) -> float:
    """Return the sum of costs over common seeds, divided by the baseline's sum; NaN if the baseline's sum is 0.

    `cost_by_seed` and `baseline_costs` have one unit.
    """
    common_seeds = sorted(set(baseline_costs) & set(cost_by_seed))
    baseline_total = sum(baseline_costs[seed] for seed in common_seeds)
    return sum(cost_by_seed[seed] for seed in common_seeds) / baseline_total if baseline_total > 0 else math.nan
