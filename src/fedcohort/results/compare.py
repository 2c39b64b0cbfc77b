"""Compare the conditions of each setting with a baseline: the one comparison that commands and studies share.

Each row of the runs' frame belongs to one cell, (setting, condition). Differences are paired by seed with the baseline
of the same setting. Their p-values are corrected by Holm's method over the methods of the setting (claim C1), without
oracles. The statistics are those of `run`, `difference`, `verdict` and `power`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fedcohort import ranges
from fedcohort.results.correction import IN_SETTING, Correction, adjust_for_claim
from fedcohort.results.difference import Difference, Mean, mean_of, paired_difference
from fedcohort.results.frame import AXES, CLOCK, Frames
from fedcohort.results.power import count_seeds, least_difference
from fedcohort.results.run import KINDS, Evaluations, Kind, late_slope, late_window, measure_run
from fedcohort.results.verdict import Rules, judge_difference

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Cell = tuple[str, str]  # setting, condition
Results = Mapping[Cell, Mapping[int, float]]  # by seed


@dataclass(frozen=True)
class Options:
    """What is compared, and how.

    Attributes:
        metric: column of the curves.
        baseline: condition with which the others are compared, None without one.
        sign: -1 if a smaller metric is better, else 1.
        result: `late` for the mean over the last sixth of the evaluations, or the `last` or the `best` value.
        horizon: last round whose evaluations count, None for the end of each run.
        rules: minimum effect, equivalence margin and number of seeds of a verdict.
        correction: `holm`, or `bh` for exploration.
    """

    metric: str
    baseline: str | None = None
    sign: int = 1
    result: Kind = "late"
    horizon: int | None = None
    rules: Rules = field(default_factory=Rules)
    correction: Correction = "holm"

    def __post_init__(self) -> None:
        ranges.choice("result", self.result, *KINDS)
        if self.horizon is not None:
            ranges.integer("horizon", self.horizon, "[1, inf)")


@dataclass(frozen=True)
class Entry:
    """The results of one condition in one setting.

    Attributes:
        results: result of each run, by seed.
        mean: mean of the results over seeds.
        difference: paired difference to the baseline; None for the baseline, and for a condition without one.
        p: p-value after the correction; NaN without a test.
        verdict: verdict on the difference; "" without one.
        seeds_needed: paired seeds that detect a difference of `rules.worth` with a power of 0.8; None if not known.
        oracle: whether the method reads what no server can know.
    """

    results: Mapping[int, float]
    mean: Mean
    difference: Difference | None = None
    p: float = math.nan
    verdict: str = ""
    seeds_needed: int | None = None
    oracle: bool = False


@dataclass(frozen=True)
class Setting:
    """Facts that hold for all conditions of a setting.

    Attributes:
        family: number of tests that the correction covers.
        seeds_needed: paired seeds that detect `rules.worth` between the baseline and the method of median spread.
        detectable: difference that the present seeds detect, in the metric's unit; NaN if not known.
        slope: slope of the baseline's evaluations over the window of its result, per round; NaN if not known.
    """

    family: int
    seeds_needed: int | None
    detectable: float
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

        def rank(entry: Entry) -> float:
            return -self.options.sign * entry.mean.mean if math.isfinite(entry.mean.mean) else math.inf

        entries = {condition: entry for (name, condition), entry in self.entries.items() if name == setting}
        return dict(sorted(entries.items(), key=lambda item: rank(item[1])))


def compare(frames: Frames, options: Options, unpaired: Collection[Cell] = ()) -> Comparison:
    """Compare the conditions of each setting with the baseline.

    Args:
        frames: finished runs, one for each setting, condition and seed, and their evaluations.
        options: what is compared.
        unpaired: cells whose seeds give other data than the baseline's, so that runs form no pairs.
    """
    evaluations = evaluations_by_run(frames, options)
    results = results_by_seed(frames.runs, options, evaluations)
    oracles = {cell for cell, rows in runs_by_cell(frames.runs).items() if rows["oracle"].any()}
    differences = {
        cell: paired_difference(values, base, options.sign)
        for cell, values in results.items()
        if (base := base_of(results, cell, options.baseline, unpaired)) is not None
    }
    rules = options.rules
    tests = {
        cell: difference.p if difference.n >= rules.seeds else math.nan
        for cell, difference in differences.items()
        if cell not in oracles
    }
    adjusted = adjust_for_claim(tests, IN_SETTING, options.correction)
    entries = {}
    for cell, values in results.items():
        entry = Entry(values, mean_of(list(values.values())), oracle=cell in oracles)
        if (difference := differences.get(cell)) is not None:
            p = adjusted.get(cell, difference.p)
            seeds = count_seeds(difference.std, rules.worth, rules.alpha) if rules.worth else None
            verdict = judge_difference(difference, p, rules)
            entry = Entry(values, entry.mean, difference, p, verdict, seeds, entry.oracle)
        entries[cell] = entry
    slopes = slopes_by_setting(frames, options, evaluations)
    settings = {
        setting: _describe([e for c, e in entries.items() if c[0] == setting], slopes.get(setting, math.nan), options)
        for setting in dict.fromkeys(setting for setting, _ in results)
    }
    return Comparison(options, entries, settings, _window(evaluations.values(), options))


def base_of(values: Mapping[Cell, T], cell: Cell, baseline: str | None, unpaired: Collection[Cell]) -> T | None:
    """Return the value of the baseline in the cell's setting; None for the baseline itself and unpaired cells."""
    if baseline is None or cell[1] == baseline or cell in unpaired:
        return None
    return values.get((cell[0], baseline))


def results_by_seed(
    runs: "pd.DataFrame", options: Options, evaluations: Mapping[str, Evaluations]
) -> dict[Cell, dict[int, float]]:
    """Return the result of each run, by cell and seed; NaN where its metric was never evaluated after training."""
    return {
        cell: {
            int(seed): measure_run(evaluations[run], options.result, options.horizon, options.sign)
            for seed, run in sorted(zip(rows["seed"], rows["run"], strict=True))
        }
        for cell, rows in runs_by_cell(runs).items()
    }


def evaluations_by_run(frames: Frames, options: Options) -> dict[str, Evaluations]:
    """Return the evaluations of each run up to the horizon, which are none for a run without a curve."""
    runs, curves, metric = frames.runs, frames.curves, options.metric
    by_run = {}
    if metric in curves:
        curves = curves[curves[metric].notna() & (curves["round"] <= (options.horizon or math.inf))]
        by_run = {str(run): rows.sort_values("round") for run, rows in curves.groupby("run")}
    clocks = runs[CLOCK] if CLOCK in runs and options.horizon is None else [math.nan] * len(runs)
    evaluations = {}
    for run, clock_s in zip(runs["run"], clocks, strict=True):
        rows = by_run.get(run, curves.iloc[:0])
        steps, values = (
            rows[name].to_numpy(dtype=float) if name in rows else np.empty(0) for name in ("round", metric)
        )
        spent = {name: rows[name].to_numpy(dtype=float) for name in AXES if name in rows}
        evaluations[run] = Evaluations(steps, values, spent, float(clock_s) if len(steps) else math.nan)
    return evaluations


def runs_by_cell(runs: "pd.DataFrame") -> "dict[Cell, pd.DataFrame]":
    """Return the rows of the runs' frame by cell."""
    return {(str(s), str(c)): rows for (s, c), rows in runs.groupby(["setting", "condition"], sort=False)}


def slopes_by_setting(frames: Frames, options: Options, evaluations: Mapping[str, Evaluations]) -> dict[str, float]:
    """Return the mean slope of the baseline over the window of its result, per round, by setting."""
    slopes: dict[str, list[float]] = {}
    runs = frames.runs[frames.runs["condition"] == options.baseline]
    for setting, run in zip(runs["setting"], runs["run"], strict=True):
        if len(evaluations[run].steps):
            slope = late_slope(evaluations[run].steps, evaluations[run].values, options.horizon)
            slopes.setdefault(str(setting), []).append(slope)
    return {setting: float(np.mean(of_setting)) for setting, of_setting in slopes.items()}


def _describe(entries: Collection[Entry], slope: float, options: Options) -> Setting:
    tests = [entry.difference for entry in entries if entry.difference is not None and not entry.oracle]
    spreads = sorted(difference.std for difference in tests if math.isfinite(difference.std))
    spread = spreads[len(spreads) // 2] if spreads else math.nan
    n = max((difference.n for difference in tests), default=0)
    return Setting(
        family=sum(math.isfinite(d.p) and d.n >= options.rules.seeds for d in tests),
        seeds_needed=count_seeds(spread, options.rules.worth, options.rules.alpha) if options.rules.worth else None,
        detectable=least_difference(spread, n, options.rules.alpha) if spread > 0 else math.nan,
        slope=slope,
    )


def _window(evaluations: Collection[Evaluations], options: Options) -> tuple[int, int]:
    """Return the first and last round of the window of the run with the latest evaluation; (0, 0) without any."""
    latest = max((run.steps for run in evaluations if len(run.steps)), key=lambda steps: steps[-1], default=np.empty(0))
    averaged = latest[late_window(latest, options.horizon)]
    return (int(averaged[0]), int(averaged[-1])) if len(averaged) else (0, 0)
