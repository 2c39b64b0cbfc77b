"""Compare the conditions of each setting with a baseline: the one comparison that commands and studies share.

Each row of the runs' frame belongs to one cell, (setting, condition). Differences are paired by seed with the baseline
of the same setting. Their p-values are corrected by Holm's method over the methods of the setting (claim C1), without
oracles. The statistics are those of `run`, `difference` and `verdict`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from fedcohort import ranges
from fedcohort.results.difference import Difference, Mean, estimate_mean, paired_difference
from fedcohort.results.frame import CLOCK_LIMIT_COLUMN, COST_COLUMNS, RunFrames, list_evaluations
from fedcohort.results.run import RESULT_KINDS, Evaluations, ResultKind, find_late_window, fit_late_slope, result_of_run
from fedcohort.results.target import SpeedUp
from fedcohort.results.verdict import Rules, TestPower, adjust_p_by_family, count_seeds, judge_difference, measure_power

T = TypeVar("T")
Cell = tuple[str, str]  # setting, condition
RunsByCell = Mapping[Cell, Mapping[int, Evaluations]]  # evaluations of each run, by cell and seed


@dataclass(frozen=True)
class Options:
    """Options of a comparison. Raises `OptionError` for an unknown `result` or a `horizon` below 1.

    Attributes:
        metric: column of the curves.
        baseline: condition with which the others are compared, None without one.
        sign: -1 if a smaller metric is better, else 1.
        result: `late` for the mean over the last sixth of the run, or the `last` or the `best` value.
        horizon: last round whose evaluations count, 1 or more; None for the end of each run.
        rules: significance level, minimum effect, equivalence margin and number of seeds of a verdict.
        unpaired_cells: cells (setting, condition) in which a seed gives other data than in the baseline's cell, so that
            runs form no pairs.
    """

    metric: str
    baseline: str | None = None
    sign: int = 1
    result: ResultKind = "late"
    horizon: int | None = None
    rules: Rules = field(default_factory=Rules)
    unpaired_cells: Collection[Cell] = ()

    def __post_init__(self) -> None:
        ranges.choice("result", self.result, *RESULT_KINDS)
        if self.horizon is not None:
            ranges.integer("horizon", self.horizon, "[1, inf)")


@dataclass(frozen=True)
class CellResult:
    """The results of one condition in one setting.

    Attributes:
        results: result of each run, by seed.
        mean: mean of the results over seeds.
        difference: paired difference to the baseline; None for the baseline itself, without a baseline, and if equal
            seeds give other data than in the baseline's runs.
        p: p-value, after Holm's correction unless `is_untested`; NaN without a test.
        verdict: verdict on the difference; "" without one.
        seeds_needed: paired seeds that detect a difference of `rules.detectable_difference` with a power of 0.8;
            None if not known.
        is_untested: whether Holm's correction ignores the p-value, as for an oracle.
    """

    results: Mapping[int, float]
    mean: Mean
    difference: Difference | None = None
    p: float = math.nan
    verdict: str = ""
    seeds_needed: int | None = None
    is_untested: bool = False


@dataclass(frozen=True)
class SettingFacts:
    """Facts that hold for all conditions of a setting.

    Attributes:
        n_tests: number of tests in the setting, over which Holm corrects.
        power: power of these tests.
        baseline_slope: slope of the metric in the last sixth of a run, in metric units per round; the mean over the
            baseline's runs, NaN if it is not known.
    """

    n_tests: int
    power: TestPower
    baseline_slope: float


@dataclass(frozen=True)
class Comparison:
    """Conditions, such as selectors, compared with a baseline in each setting.

    Attributes:
        options: options of the comparison.
        results: results by setting and condition.
        settings: facts of each setting, by its name.
        result_window: first and last round that a result averages, in the run with the latest evaluation; (0, 0)
            without one.
    """

    options: Options
    results: Mapping[Cell, CellResult]
    settings: Mapping[str, SettingFacts]
    result_window: tuple[int, int]

    def list_results(self, setting: str) -> dict[str, CellResult]:
        """Return the results of `setting` by condition: the best mean first, diverged conditions last."""
        entries = [(condition, entry) for (name, condition), entry in self.results.items() if name == setting]
        means = {condition: self.options.sign * entry.mean.mean for condition, entry in entries}
        return dict(
            sorted(
                entries,
                key=lambda condition_and_entry: (
                    -means[condition_and_entry[0]] if math.isfinite(means[condition_and_entry[0]]) else math.inf
                ),
            )
        )


def compare_conditions(frames: RunFrames, options: Options) -> Comparison:
    """Compare the conditions of each setting with the baseline.

    Args:
        frames: finished runs, one for each setting, condition and seed, and their evaluations.
        options: metric, baseline and rules of the comparison.
    """
    runs = group_runs_by_cell(frames, options)
    cell_results = compare_results(measure_results(runs, options), list_oracle_cells(frames), options)
    settings = {}
    for name in dict.fromkeys(setting for setting, _ in cell_results):
        gains = [e.difference for c, e in cell_results.items() if c[0] == name and e.difference and not e.is_untested]
        n_tests = sum(math.isfinite(difference.p) and difference.n >= options.rules.min_seeds for difference in gains)
        baseline_runs = [run for run in runs.get((name, str(options.baseline)), {}).values() if len(run.steps)]
        late_slopes = [fit_late_slope(run.steps, run.values, options.horizon) for run in baseline_runs]
        power = measure_power(gains, options.rules)
        settings[name] = SettingFacts(n_tests, power, float(np.mean(late_slopes)) if late_slopes else math.nan)
    evaluated_rounds = [run.steps for run_by_seed in runs.values() for run in run_by_seed.values() if len(run.steps)]
    latest_rounds = max(evaluated_rounds, key=lambda steps: steps[-1], default=np.empty(0))
    averaged_rounds = latest_rounds[find_late_window(latest_rounds, options.horizon)]
    result_window = (int(averaged_rounds[0]), int(averaged_rounds[-1])) if len(averaged_rounds) else (0, 0)
    return Comparison(options, cell_results, settings, result_window)


def compare_results(
    results: Mapping[Cell, Mapping[int, float]], untested_cells: Collection[Cell], options: Options
) -> dict[Cell, CellResult]:
    """Compare results with the baseline's: difference, p-value after Holm in the setting, and verdict, by cell.

    A cell is (setting, condition). `fedcohort compare` and the reports of studies both call it.

    Args:
        results: result of each run, by cell and seed.
        untested_cells: cells, such as those of oracles, whose p-values Holm's correction ignores.
        options: metric, baseline and rules of the comparison.
    """
    rules = options.rules
    differences = {
        cell: paired_difference(values, baseline_values, options.sign)
        for cell, values in results.items()
        if (baseline_values := find_baseline_value(results, cell, options)) is not None
    }
    p_values = correct_p_values(differences, untested_cells, rules)
    cell_results = {}
    for cell, values in results.items():
        entry = CellResult(values, estimate_mean(list(values.values())), is_untested=cell in untested_cells)
        if (difference := differences.get(cell)) is not None:
            verdict = judge_difference(difference, p_values[cell], rules)
            seeds_needed = count_seeds(difference.std, rules.detectable_difference, rules.alpha)
            entry = replace(entry, difference=difference, p=p_values[cell], verdict=verdict, seeds_needed=seeds_needed)
        cell_results[cell] = entry
    return cell_results


def group_runs_by_cell(frames: RunFrames, options: Options) -> dict[Cell, dict[int, Evaluations]]:
    """Return the evaluations of each run up to the horizon, by cell (setting, condition) and seed.

    The evaluations of a run without a curve are empty.

    Args:
        frames: finished runs and their evaluations.
        options: metric and horizon of the comparison.
    """
    curves = frames.curves[frames.curves[options.metric].notna()].sort_values("round")
    cost_columns, curve_by_run = [name for name in COST_COLUMNS if name in curves], dict(iter(curves.groupby("run")))
    runs_by_seed: dict[Cell, dict[int, Evaluations]] = {}
    for run in frames.runs.to_dict("records"):
        curve = list_evaluations(curve_by_run.get(run["run"], curves[:0]), options.metric, cost_columns)
        run_by_seed = runs_by_seed.setdefault((run["setting"], run["condition"]), {})
        run_by_seed[run["seed"]] = curve.cut_at_horizon(options.horizon, run.get(CLOCK_LIMIT_COLUMN, math.nan))
    return {cell: dict(sorted(run_by_seed.items())) for cell, run_by_seed in runs_by_seed.items()}


def measure_results(runs: RunsByCell, options: Options) -> dict[Cell, dict[int, float]]:
    """Return the result of each run, by cell and seed; NaN where its metric was never evaluated after training.

    Args:
        runs: evaluations of each run, by cell (setting, condition) and seed.
        options: definition of a result, with horizon and sign.
    """
    return {
        cell: {
            seed: result_of_run(run, options.result, options.horizon, options.sign) for seed, run in run_by_seed.items()
        }
        for cell, run_by_seed in runs.items()
    }


def list_oracle_cells(frames: RunFrames) -> set[Cell]:
    """Return the cells (setting, condition) of `frames` with a run that reads what no server can know."""
    runs = frames.runs[frames.runs["oracle"]]
    return set(zip(runs["setting"], runs["condition"], strict=True))


def find_baseline_value(values: Mapping[Cell, T], cell: Cell, options: Options) -> T | None:
    """Return the baseline's value in the setting of `cell`; None without one, for its own cell, and without pairs.

    Args:
        values: values by cell (setting, condition).
        cell: the cell that is compared.
        options: options of the comparison, with the baseline and the cells that form no pairs with it.
    """
    if options.baseline is None or cell[1] == options.baseline or cell in options.unpaired_cells:
        return None
    return values.get((cell[0], options.baseline))


def correct_p_values(
    test_by_cell: Mapping[Cell, Difference | SpeedUp], untested_cells: Collection[Cell], rules: Rules
) -> dict[Cell, float]:
    """Return the p-value of each test, corrected by Holm's method over the methods of its setting.

    Args:
        test_by_cell: differences or speed-ups, by cell (setting, condition).
        untested_cells: cells, such as those of oracles, whose p-value is not corrected.
        rules: `rules.min_seeds` is the number of seeds below which a p-value is not corrected.
    """
    tested_p = {
        c: test.p if test.n >= rules.min_seeds else math.nan
        for c, test in test_by_cell.items()
        if c not in untested_cells
    }
    return {cell: test.p for cell, test in test_by_cell.items()} | adjust_p_by_family(tested_p, lambda cell: cell[0])
