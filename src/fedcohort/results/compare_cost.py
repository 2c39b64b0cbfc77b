"""Compare the cost to a target of each condition with the baseline's: rounds, virtual seconds, bytes and client FLOPs.

The target of a setting is a value, a share of the way to the baseline's mean result, or, on each seed, the best result
of some conditions. The definitions are those of `target` and `speed_up`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.compare import Cell, Options, base_of, evaluations_by_run, results_by_seed
from fedcohort.results.correction import IN_SETTING, adjust_for_claim
from fedcohort.results.frame import AXES as COSTS
from fedcohort.results.frame import Frames
from fedcohort.results.metric import is_share
from fedcohort.results.run import Evaluations, count_averaged, measure_run
from fedcohort.results.speed_up import SpeedUp, judge_speed, speed_up
from fedcohort.results.target import LEVEL, Cost, MedianCost, baseline_target, costs_to_target, median_cost

if TYPE_CHECKING:
    import pandas as pd

ROUNDS = "rounds"
AXES = (*COSTS, ROUNDS)
BASELINE, BEST_OF = "baseline", "best_of:"
CROSSINGS = ("window", "first")


@dataclass(frozen=True)
class Target:
    """The value of the metric that a run has to reach.

    Attributes:
        value: the target, None for `best_of` or the baseline's level.
        best_of: conditions whose best result on each seed is the target.
        level: share of the way to the baseline's mean result, in (0, 1]; used without `value` and `best_of`.
        crossing: `window` averages as many evaluations as a run's result; `first` takes the first evaluation.
    """

    value: float | None = None
    best_of: Sequence[str] = ()
    level: float = LEVEL
    crossing: str = "window"

    def __post_init__(self) -> None:
        ranges.number("level", self.level, "(0, 1]")
        ranges.choice("crossing", self.crossing, *CROSSINGS)


@dataclass(frozen=True)
class CostEntry:
    """The cost to the target of one condition in one setting, along one axis.

    Attributes:
        costs: cost of each run, by seed.
        median: median cost over seeds.
        speed_up: speed-up over the baseline; None for the baseline, and for a condition without one.
        p: p-value after the correction.
        verdict: verdict on the speed-up; "" without one.
    """

    costs: Mapping[int, Cost]
    median: MedianCost
    speed_up: SpeedUp | None = None
    p: float = math.nan
    verdict: str = ""


@dataclass(frozen=True)
class CostComparison:
    """Costs to a target.

    Attributes:
        axis: cost that the primary verdicts are about.
        targets: target by setting and seed.
        entries: costs by axis, and by setting and condition; an axis that some run did not log is left out.
    """

    axis: str
    target: Target
    targets: Mapping[str, Mapping[int, float]]
    entries: Mapping[str, Mapping[Cell, CostEntry]]


def parse_target(text: str, metric: str, level: float = LEVEL, crossing: str = "window") -> Target:
    """Return the target that an option names: a number, `baseline`, or `best_of:` and conditions.

    Raises `OptionError` for other texts, and for a share outside [0, 1].
    """
    if text == BASELINE:
        return Target(level=level, crossing=crossing)
    if text.startswith(BEST_OF) and (names := [name for name in text.removeprefix(BEST_OF).split(",") if name]):
        return Target(best_of=names, crossing=crossing)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        allowed = f"a number, {BASELINE}, or {BEST_OF} and conditions, as {BEST_OF}random,oort"
        raise ranges.refuse("target", allowed, text)
    if is_share(metric) and not 0 <= value <= 1:
        raise ranges.refuse("target", f"a number in [0, 1], as {metric} is a share (0.8 is 80 %)", text)
    return Target(value, crossing=crossing)


def compare_cost(
    frames: Frames, options: Options, target: Target, axis: str = "virtual_s", unpaired: Collection[Cell] = ()
) -> CostComparison:
    """Compare the cost to the target with the baseline's, along every axis that all runs logged.

    Raises `OptionError` for an `axis` that a run did not log, and for a target that no condition sets.
    """
    ranges.choice("axis", axis, *AXES)
    runs, evaluations = frames.runs, evaluations_by_run(frames, options)
    targets = _targets(runs, evaluations, options, target)
    axes = [name for name in COSTS if name in runs and (runs[name] > 0).all()] + [ROUNDS]
    if axis not in axes:
        lacking = runs[~(runs[axis] > 0)] if axis in runs else runs
        name = PurePath(str(lacking["folder"].iloc[0])).name or lacking["run"].iloc[0]
        why = "virtual time does not pass with device=instant" if axis == "virtual_s" else "it was not logged"
        raise OptionError(f"axis={axis} is not known of run {name}: {why}. Set axis to one of {', '.join(axes)}")
    costs: dict[str, dict[Cell, dict[int, Cost]]] = {name: {} for name in axes}
    oracles = set[Cell]()
    columns = (runs.sort_values("seed")[name] for name in ("run", "setting", "condition", "seed", "oracle"))
    for run, setting, condition, seed, is_oracle in zip(*columns, strict=True):
        cell = (str(setting), str(condition))
        oracles |= {cell} if is_oracle else set()
        goal = targets[cell[0]].get(int(seed), math.nan)
        of_run = measure_costs(evaluations[run], goal, options, target) if math.isfinite(goal) else {}
        for name in axes:
            by_seed = costs[name].setdefault(cell, {})
            if name in of_run:
                by_seed[int(seed)] = of_run[name]
    entries = {name: compare_along(by_cell, oracles, options, unpaired) for name, by_cell in costs.items()}
    return CostComparison(axis, target, targets, entries)


def measure_costs(run: Evaluations, goal: float, options: Options, target: Target) -> dict[str, Cost]:
    """Return the costs of a run until it met the value `goal`, by axis; none without evaluations."""
    if not len(run.steps):
        return {}
    window = count_averaged(run, options.horizon) if target.crossing == "window" else 1
    return costs_to_target(replace(run, spent={**run.spent, ROUNDS: run.steps}), goal, window, options.sign)


def compare_along(
    costs: Mapping[Cell, Mapping[int, Cost]],
    untested: Collection[Cell],
    options: Options,
    unpaired: Collection[Cell] = (),
) -> dict[Cell, CostEntry]:
    """Compare costs along one axis.

    Args:
        costs: cost of each run until the target, by cell and seed.
        untested: cells, such as those of oracles, whose p-values are not in the family of the correction.
        options: of the comparison.
        unpaired: cells whose seeds give other data than the baseline's.
    """
    ups = {
        cell: speed_up(base, by_seed)
        for cell, by_seed in costs.items()
        if by_seed and (base := base_of(costs, cell, options.baseline, unpaired))
    }
    tests = {c: up.p if up.n >= options.rules.seeds else math.nan for c, up in ups.items() if c not in untested}
    adjusted = adjust_for_claim(tests, IN_SETTING, options.correction)
    entries = {}
    for cell, by_seed in costs.items():
        up = ups.get(cell)
        p = adjusted.get(cell, up.p) if up is not None else math.nan
        verdict = judge_speed(up, p, options.rules) if up is not None else ""
        entries[cell] = CostEntry(by_seed, median_cost(list(by_seed.values())), up, p, verdict)
    return entries


def _targets(
    runs: "pd.DataFrame", evaluations: Mapping[str, Evaluations], options: Options, target: Target
) -> dict[str, dict[int, float]]:
    """Return the target of each setting and seed; a seed that has none is left out."""
    results = results_by_seed(runs, options, evaluations)
    targets: dict[str, dict[int, float]] = {}
    for setting in dict.fromkeys(setting for setting, _ in results):
        by_condition = {condition: values for (name, condition), values in results.items() if name == setting}
        seeds = sorted({seed for values in by_condition.values() for seed in values})
        if target.best_of:
            conditions = list(dict.fromkeys(condition for _, condition in results))
            if absent := [name for name in target.best_of if name not in conditions]:
                allowed = f"{BEST_OF} and one or more of {', '.join(conditions)}"
                raise ranges.refuse("target", allowed, f"{BEST_OF}{','.join(absent)}")
            named = [by_condition.get(name, {}) for name in target.best_of]
            targets[setting] = {
                seed: options.sign * max(options.sign * values[seed] for values in named)
                for seed in seeds
                if all(math.isfinite(values.get(seed, math.nan)) for values in named)
            }
            continue
        if target.value is None and options.baseline is None:
            raise ranges.refuse("target", "a number or best_of: without a baseline", BASELINE)
        is_base = (runs["setting"] == setting) & (runs["condition"] == options.baseline)
        value = target_value([evaluations[run] for run in runs[is_base]["run"]], options, target)
        targets[setting] = dict.fromkeys(seeds, value) if math.isfinite(value) else {}
    return targets


def target_value(baseline_runs: Collection[Evaluations], options: Options, target: Target) -> float:
    """Return the target of a setting: a value, or a share of the way to the baseline's mean result; NaN if not known.

    Args:
        baseline_runs: the evaluations of the baseline in the setting.
        options: of the comparison.
        target: without `best_of`.
    """
    if target.value is not None:
        return target.value
    results = [measure_run(run, options.result, options.horizon, options.sign) for run in baseline_runs]
    untrained = [float(value) for run in baseline_runs for value in run.values[run.steps == 0]]
    start = 0.0 if is_share(options.metric) else float(np.mean(untrained)) if untrained else math.nan
    return baseline_target(results, target.level, start)
