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
from fedcohort.results.frame import Frames
from fedcohort.results.power import count_seeds, least_difference
from fedcohort.results.run import KINDS, Kind, late_slope, late_window, mean_over_time, run_result
from fedcohort.results.verdict import Rules, judge_difference

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Cell = tuple[str, str]  # setting, condition
Results = Mapping[Cell, Mapping[int, float]]  # by seed
CLOCK = "clock_s"  # column of the runs' frame: the budget of virtual seconds of a run that has one


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
    results = results_by_seed(frames, options)
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
            seeds = count_seeds(difference.std, rules.worth) if rules.worth else None
            verdict = judge_difference(difference, p, rules)
            entry = Entry(values, entry.mean, difference, p, verdict, seeds, entry.oracle)
        entries[cell] = entry
    curves = curves_by_run(frames)
    settings = {
        setting: _describe(setting, frames, curves, {c: e for c, e in entries.items() if c[0] == setting}, options)
        for setting in dict.fromkeys(setting for setting, _ in results)
    }
    return Comparison(options, entries, settings, _window(curves.values(), options))


def base_of(values: Mapping[Cell, T], cell: Cell, baseline: str | None, unpaired: Collection[Cell]) -> T | None:
    """Return the value of the baseline in the cell's setting; None for the baseline itself and unpaired cells."""
    if baseline is None or cell[1] == baseline or cell in unpaired:
        return None
    return values.get((cell[0], baseline))


def results_by_seed(frames: Frames, options: Options) -> dict[Cell, dict[int, float]]:
    """Return the result of each run, by cell and seed; NaN if its metric was never evaluated after training."""
    curves = curves_by_run(frames)
    results: dict[Cell, dict[int, float]] = {}
    for cell, rows in runs_by_cell(frames.runs).items():
        clocks = rows[CLOCK] if CLOCK in rows else rows["seed"] * math.nan
        results[cell] = {
            int(seed): _result(curves.get(run), options, float(clock))
            for run, seed, clock in sorted(zip(rows["run"], rows["seed"], clocks, strict=True), key=lambda row: row[1])
        }
    return results


def curves_by_run(frames: Frames) -> "dict[str, pd.DataFrame]":
    """Return the curves of each run."""
    return {str(run): rows for run, rows in frames.curves.groupby("run")} if len(frames.curves) else {}


def runs_by_cell(runs: "pd.DataFrame") -> "dict[Cell, pd.DataFrame]":
    """Return the rows of the runs' frame by cell."""
    return {(str(s), str(c)): rows for (s, c), rows in runs.groupby(["setting", "condition"], sort=False)}


def evaluations(curve: "pd.DataFrame", metric: str, horizon: float | None = None) -> "pd.DataFrame":
    """Return the rows of a run's curve that measured the metric, up to a round, ordered by round."""
    if metric not in curve:
        return curve.iloc[:0]
    rows = curve[curve[metric].notna()].sort_values("round")
    return rows if horizon is None else rows[rows["round"] <= horizon]


def _result(curve: "pd.DataFrame | None", options: Options, clock_s: float) -> float:
    rows = evaluations(curve, options.metric, options.horizon) if curve is not None else None
    if rows is None or not len(rows):
        return math.nan
    steps, values = rows["round"].to_numpy(), rows[options.metric].to_numpy(dtype=float)
    if options.result == "late" and math.isfinite(clock_s) and options.horizon is None:
        return mean_over_time(rows["virtual_s"].to_numpy(), values, clock_s)
    if options.result == "best":
        return options.sign * run_result(steps, options.sign * values, "best", options.horizon)
    return run_result(steps, values, options.result, options.horizon)


def _describe(
    setting: str, frames: Frames, curves: "Mapping[str, pd.DataFrame]", entries: Mapping[Cell, Entry], options: Options
) -> Setting:
    tests = [entry.difference for entry in entries.values() if entry.difference is not None and not entry.oracle]
    spreads = sorted(difference.std for difference in tests if math.isfinite(difference.std))
    spread = spreads[len(spreads) // 2] if spreads else math.nan
    n = max((difference.n for difference in tests), default=0)
    runs = frames.runs
    slopes = []
    for run in runs[(runs["setting"] == setting) & (runs["condition"] == options.baseline)]["run"]:
        rows = evaluations(curves[run], options.metric, options.horizon) if run in curves else None
        if rows is not None and len(rows):
            slopes.append(late_slope(rows["round"].to_numpy(), rows[options.metric].to_numpy(), options.horizon))
    return Setting(
        family=sum(math.isfinite(d.p) and d.n >= options.rules.seeds for d in tests),
        seeds_needed=count_seeds(spread, options.rules.worth) if options.rules.worth else None,
        detectable=least_difference(spread, n) if spread > 0 else math.nan,
        slope=float(np.mean(slopes)) if slopes else math.nan,
    )


def _window(curves: "Collection[pd.DataFrame]", options: Options) -> tuple[int, int]:
    """Return the first and last round of the window of the run with the latest evaluation; (0, 0) without any."""
    latest = np.empty(0)
    for curve in curves:
        steps = evaluations(curve, options.metric, options.horizon)["round"].to_numpy(dtype=float)
        if len(steps) and (not len(latest) or steps[-1] > latest[-1]):
            latest = steps
    averaged = latest[late_window(latest, options.horizon)]
    return (int(averaged[0]), int(averaged[-1])) if len(averaged) else (0, 0)
