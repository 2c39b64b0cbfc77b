"""Compare the conditions of each setting with a baseline: the one comparison that commands and studies share.

Each row of the runs' frame belongs to one cell, (setting, condition). Differences are paired by seed with the baseline
of the same setting. Their p-values are corrected by Holm's method over the methods of the setting (claim C1), without
oracles. The statistics are those of `run`, `difference`, `verdict` and `power`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from fedcohort import ranges
from fedcohort.results.difference import Difference, Mean, mean_of, paired_difference
from fedcohort.results.frame import AXES, CLOCK_COLUMN, Frames
from fedcohort.results.power import Power, count_seeds, measure_power
from fedcohort.results.run import RESULT_KINDS, Evaluations, Kind, late_slope, late_window, measure_run
from fedcohort.results.target import SpeedUp
from fedcohort.results.verdict import Rules, adjust_families, judge_difference

T = TypeVar("T")
Cell = tuple[str, str]  # setting, condition
Runs = Mapping[Cell, Mapping[int, Evaluations]]  # evaluations of each run, by cell and seed


@dataclass(frozen=True)
class Options:
    """Options of a comparison: metric, baseline, result of a run, and rules of a verdict.

    Attributes:
        metric: column of the curves.
        baseline: condition with which the others are compared, None without one.
        sign: -1 if a smaller metric is better, else 1.
        result: `late` for the mean over the last sixth of the evaluations, or the `last` or the `best` value.
        horizon: last round whose evaluations count, None for the end of each run.
        rules: minimum effect, equivalence margin and number of seeds of a verdict.
    """

    metric: str
    baseline: str | None = None
    sign: int = 1
    result: Kind = "late"
    horizon: int | None = None
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        ranges.choice("result", self.result, *RESULT_KINDS)
        if self.horizon is not None:
            ranges.integer("horizon", self.horizon, "[1, inf)")


@dataclass(frozen=True)
class Entry:
    """The results of one condition in one setting.

    Attributes:
        results: result of each run, by seed.
        mean: mean of the results over seeds.
        difference: paired difference to the baseline; None for the baseline itself, and for an unpaired condition.
        p: p-value after Holm's correction; NaN without a test.
        verdict: verdict on the difference; "" without one.
        seeds_needed: paired seeds that detect a difference of `rules.worth` with a power of 0.8; None if not known.
        untested: whether Holm's correction ignores the p-value, as for an oracle.
    """

    results: Mapping[int, float]
    mean: Mean
    difference: Difference | None = None
    p: float = math.nan
    verdict: str = ""
    seeds_needed: int | None = None
    untested: bool = False


@dataclass(frozen=True)
class Setting:
    """Facts that hold for all conditions of a setting.

    Attributes:
        family: number of tests that the correction covers.
        power: power of its tests.
        slope: slope of the baseline's evaluations over the window of its result, per round; NaN if not known.
    """

    family: int
    power: Power
    slope: float


@dataclass(frozen=True)
class Comparison:
    """Conditions compared with a baseline.

    Attributes:
        entries: results by setting and condition.
        settings: facts of each setting, in order.
        window: first and last round whose evaluations a result averages, of the run with the latest evaluation.
    """

    options: Options
    entries: Mapping[Cell, Entry]
    settings: Mapping[str, Setting]
    window: tuple[int, int]

    def in_setting(self, setting: str) -> dict[str, Entry]:
        """Return the entries of a setting by condition: the best mean first, diverged conditions last."""
        entries = [(condition, entry) for (name, condition), entry in self.entries.items() if name == setting]
        means = {condition: self.options.sign * entry.mean.mean for condition, entry in entries}
        return dict(sorted(entries, key=lambda item: -means[item[0]] if math.isfinite(means[item[0]]) else math.inf))


def compare(frames: Frames, options: Options, unpaired: Collection[Cell] = ()) -> Comparison:
    """Compare the conditions of each setting with the baseline.

    Args:
        frames: finished runs, one for each setting, condition and seed, and their evaluations.
        options: what is compared.
        unpaired: cells in which a seed gives other data than in the baseline's cell, so that runs form no pairs.
    """
    runs = runs_by_cell(frames, options)
    entries = compare_results(results_by_seed(runs, options), list_oracles(frames), options, unpaired)
    settings = {}
    for name in dict.fromkeys(setting for setting, _ in entries):
        tested = [e.difference for c, e in entries.items() if c[0] == name and e.difference and not e.untested]
        n_tests = sum(math.isfinite(difference.p) and difference.n >= options.rules.seeds for difference in tested)
        base_runs = [run for run in runs.get((name, str(options.baseline)), {}).values() if len(run.steps)]
        slopes = [late_slope(run.steps, run.values, options.horizon) for run in base_runs]
        power = measure_power(tested, options.rules)
        settings[name] = Setting(n_tests, power, float(np.mean(slopes)) if slopes else math.nan)
    return Comparison(options, entries, settings, _find_window(runs, options))


def compare_results(
    results: Mapping[Cell, Mapping[int, float]],
    untested: Collection[Cell],
    options: Options,
    unpaired: Collection[Cell] = (),
) -> dict[Cell, Entry]:
    """Compare results with the baseline's: the difference, its p-value after Holm in the setting, and the verdict.

    `fedcohort compare` and the reports of studies both call it.

    Args:
        results: result of each run, by cell and seed.
        untested: cells, such as those of oracles, whose p-values Holm's correction ignores.
        options: options of the comparison.
        unpaired: cells in which a seed gives other data than in the baseline's cell.
    """
    rules = options.rules
    differences = {
        cell: paired_difference(values, baseline_values, options.sign)
        for cell, values in results.items()
        if (baseline_values := baseline_value(results, cell, options.baseline, unpaired)) is not None
    }
    p_values = correct_in_setting(differences, untested, rules)
    entries = {}
    for cell, values in results.items():
        entry = Entry(values, mean_of(list(values.values())), untested=cell in untested)
        if (difference := differences.get(cell)) is not None:
            verdict = judge_difference(difference, p_values[cell], rules)
            seeds_needed = count_seeds(difference.std, rules.worth, rules.alpha)
            entry = replace(entry, difference=difference, p=p_values[cell], verdict=verdict, seeds_needed=seeds_needed)
        entries[cell] = entry
    return entries


def runs_by_cell(frames: Frames, options: Options) -> dict[Cell, dict[int, Evaluations]]:
    """Return the evaluations of each run up to the horizon, by cell and seed; a run without a curve has none."""
    curves = frames.curves[frames.curves[options.metric].notna()].sort_values("round")
    axes, by_run = [name for name in AXES if name in curves], dict(iter(curves.groupby("run")))
    runs_by_seed: dict[Cell, dict[int, Evaluations]] = {}
    for run in frames.runs.to_dict("records"):
        curve = Evaluations.from_rows(by_run.get(run["run"], curves[:0]), options.metric, axes)
        by_seed = runs_by_seed.setdefault((run["setting"], run["condition"]), {})
        by_seed[run["seed"]] = curve.up_to(options.horizon, run.get(CLOCK_COLUMN, math.nan))
    return {cell: dict(sorted(by_seed.items())) for cell, by_seed in runs_by_seed.items()}


def results_by_seed(runs: Runs, options: Options) -> dict[Cell, dict[int, float]]:
    """Return the result of each run, by cell and seed; NaN where its metric was never evaluated after training."""
    return {
        cell: {seed: measure_run(run, options.result, options.horizon, options.sign) for seed, run in by_seed.items()}
        for cell, by_seed in runs.items()
    }


def list_oracles(frames: Frames) -> set[Cell]:
    """Return the cells with a run that reads what no server can know."""
    runs = frames.runs[frames.runs["oracle"]]
    return set(zip(runs["setting"], runs["condition"], strict=True))


def baseline_value(values: Mapping[Cell, T], cell: Cell, baseline: str | None, unpaired: Collection[Cell]) -> T | None:
    """Return the value of the baseline in the cell's setting; None for the baseline itself and unpaired cells."""
    if baseline is None or cell[1] == baseline or cell in unpaired:
        return None
    return values.get((cell[0], baseline))


def correct_in_setting(
    tests: Mapping[Cell, Difference | SpeedUp], untested: Collection[Cell], rules: Rules
) -> dict[Cell, float]:
    """Return the p-value of each test, corrected by Holm's method over the methods of its setting.

    Args:
        tests: differences or speed-ups, by cell.
        untested: cells, such as those of oracles, whose p-value is not corrected.
        rules: `rules.seeds` is the number of seeds below which a p-value is not corrected.
    """
    in_family = {c: test.p if test.n >= rules.seeds else math.nan for c, test in tests.items() if c not in untested}
    return {cell: test.p for cell, test in tests.items()} | adjust_families(in_family, lambda cell: cell[0])


def _find_window(runs: Runs, options: Options) -> tuple[int, int]:
    """Return the first and last round that a result averages, of the run with the latest evaluation; (0, 0) if none."""
    round_lists = [run.steps for by_seed in runs.values() for run in by_seed.values() if len(run.steps)]
    latest_steps = max(round_lists, key=lambda steps: steps[-1], default=np.empty(0))
    averaged_rounds = latest_steps[late_window(latest_steps, options.horizon)]
    return (int(averaged_rounds[0]), int(averaged_rounds[-1])) if len(averaged_rounds) else (0, 0)
