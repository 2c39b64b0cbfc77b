"""Compare the cost to a target of each condition with the baseline's: rounds, virtual seconds, bytes and client FLOPs.

The target of a setting is a value, a share of the way to the baseline's mean result, or, on each seed, the best result
of some conditions. The definitions are those of `target` and `speed_up`.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.compare import Cell, Options, Results, base_of, curves_by_run, evaluations, results_by_seed
from fedcohort.results.correction import IN_SETTING, adjust_for_claim
from fedcohort.results.frame import AXES as COSTS
from fedcohort.results.frame import Frames
from fedcohort.results.metric import is_share
from fedcohort.results.run import late_window
from fedcohort.results.speed_up import SpeedUp, judge_speed, speed_up
from fedcohort.results.target import LEVEL, Cost, MedianCost, baseline_target, cost_to_target, median_cost

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
    results = results_by_seed(frames, options)
    targets = _targets(frames, results, options, target)
    runs = frames.runs
    axes = [name for name in COSTS if name in runs and (runs[name] > 0).all()] + [ROUNDS]
    if axis not in axes:
        lacking = runs[~(runs[axis] > 0)] if axis in runs else runs
        name = PurePath(str(lacking["folder"].iloc[0])).name or lacking["run"].iloc[0]
        why = "virtual time does not pass with device=instant" if axis == "virtual_s" else "it was not logged"
        raise OptionError(f"axis={axis} is not known of run {name}: {why}. Set axis to one of {', '.join(axes)}")
    entries = {}
    for name in axes:
        costs, oracles = _costs_by_seed(name, frames, options, target, targets)
        entries[name] = _compare_along(costs, oracles, options, unpaired)
    return CostComparison(axis, target, targets, entries)


def _costs_by_seed(
    axis: str, frames: Frames, options: Options, target: Target, targets: Mapping[str, Mapping[int, float]]
) -> tuple[dict[Cell, dict[int, Cost]], set[Cell]]:
    """Return the cost to the target of each run along the axis, by cell and seed, and the cells of oracles."""
    curves, runs = curves_by_run(frames), frames.runs.sort_values("seed")
    costs: dict[Cell, dict[int, Cost]] = {}
    oracles: set[Cell] = set()
    columns = (runs[name] for name in ("run", "setting", "condition", "seed", "oracle"))
    for run, setting, condition, seed, is_oracle in zip(*columns, strict=True):
        cell = (str(setting), str(condition))
        costs.setdefault(cell, {})
        oracles |= {cell} if is_oracle else set()
        if run not in curves or seed not in targets[cell[0]]:
            continue
        rows = evaluations(curves[run], options.metric, options.horizon)
        if not len(rows):
            continue
        steps, values = rows["round"].to_numpy(), rows[options.metric].to_numpy(dtype=float)
        spent = steps if axis == ROUNDS else rows[axis].to_numpy(dtype=float)
        window = int(late_window(steps, options.horizon).sum()) if target.crossing == "window" else 1
        costs[cell][int(seed)] = cost_to_target(steps, spent, values, targets[cell[0]][seed], window, options.sign)
    return costs, oracles


def _compare_along(
    costs: Mapping[Cell, Mapping[int, Cost]], oracles: Collection[Cell], options: Options, unpaired: Collection[Cell]
) -> dict[Cell, CostEntry]:
    ups = {
        cell: speed_up(base, by_seed)
        for cell, by_seed in costs.items()
        if by_seed and (base := base_of(costs, cell, options.baseline, unpaired))
    }
    tests = {c: up.p if up.n >= options.rules.seeds else math.nan for c, up in ups.items() if c not in oracles}
    adjusted = adjust_for_claim(tests, IN_SETTING, options.correction)
    entries = {}
    for cell, by_seed in costs.items():
        up = ups.get(cell)
        p = adjusted.get(cell, up.p) if up is not None else math.nan
        verdict = judge_speed(up, p, options.rules) if up is not None else ""
        entries[cell] = CostEntry(by_seed, median_cost(list(by_seed.values())), up, p, verdict)
    return entries


def _targets(frames: Frames, results: Results, options: Options, target: Target) -> dict[str, dict[int, float]]:
    """Return the target of each setting and seed; a seed that has none is left out."""
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
        value = target.value
        if value is None:
            if options.baseline is None:
                raise ranges.refuse("target", "a number or best_of: without a baseline", BASELINE)
            base = [x for x in by_condition.get(options.baseline, {}).values() if math.isfinite(x)]
            start = 0.0 if is_share(options.metric) else _mean_before_training(frames, setting, options)
            value = baseline_target(base, target.level, start)
        targets[setting] = dict.fromkeys(seeds, value) if math.isfinite(value) else {}
    return targets


def _mean_before_training(frames: Frames, setting: str, options: Options) -> float:
    """Return the mean metric of the baseline's models before training; NaN if not known."""
    runs = frames.runs
    base = runs[(runs["setting"] == setting) & (runs["condition"] == options.baseline)]["run"]
    curves = frames.curves
    rows = curves[curves["run"].isin(base) & (curves["round"] == 0)]
    return float(rows[options.metric].mean()) if options.metric in rows else math.nan
