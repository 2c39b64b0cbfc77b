"""Compare the conditions of each setting with a baseline: the one comparison that commands and studies share.

A row of the runs' frame belongs to a cell, (setting, condition). Differences are paired by seed with the baseline of
the same setting; p-values are corrected by Holm over the methods of the setting (claim C1), without oracles. The
statistics are those of `run`, `difference`, `verdict`, `power`, `target` and `speed_up`.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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

Cell = tuple[str, str]  # setting, condition
Results = Mapping[Cell, Mapping[int, float]]  # by seed
COSTS = ("virtual_s", "bytes", "client_flops")
CLOCK = "clock_s"  # column of the runs' frame: the budget of virtual seconds of a run that has one


@dataclass(frozen=True)
class Options:
    """What is compared, and how.

    Attributes:
        metric: column of the curves.
        baseline: condition to which differences are taken, None without one.
        sign: -1 where less of the metric is better, else 1.
        result: mean over the last sixth of the evaluations (`late`), or the `last` or the `best` value.
        horizon: round up to which evaluations count, None for the end of each run.
        rules: minimum effect, equivalence margin and number of seeds of a verdict.
        correction: `holm`, or `bh` for exploring.
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
    """One condition in one setting.

    Attributes:
        results: of its runs, by seed.
        mean: over seeds.
        difference: to the baseline; None for the baseline, and for a condition that has none.
        p: after the correction; NaN where there is no test.
        verdict: on the difference; "" without one.
        seeds_needed: paired seeds that show a difference of `rules.worth` with a power of .8; None if not known.
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
    """What holds for all conditions of a setting.

    Attributes:
        family: number of tests that the correction covers.
        seeds_needed: paired seeds that show `rules.worth` between the baseline and the method of median spread.
        shown: difference that the present seeds show, in the metric's own unit; NaN if not known.
        slope: of the baseline's evaluations over the window of its result, per round; NaN if not known.
    """

    family: int
    seeds_needed: int | None
    shown: float
    slope: float


@dataclass(frozen=True)
class Comparison:
    """Conditions compared with a baseline.

    Attributes:
        entries: by setting and condition.
        settings: what holds for each setting, in order.
        window: first and last round whose evaluations a result averages, of the run that was evaluated latest.
    """

    options: Options
    entries: Mapping[Cell, Entry]
    settings: Mapping[str, Setting]
    window: tuple[int, int]

    def in_setting(self, setting: str) -> dict[str, Entry]:
        """Return the entries of a setting by condition: the best mean first, one that diverged last."""
        own = {condition: entry for (name, condition), entry in self.entries.items() if name == setting}
        return dict(sorted(own.items(), key=lambda item: _rank(item[1], self.options.sign)))


def compare(frames: Frames, options: Options, apart: Collection[Cell] = ()) -> Comparison:
    """Compare the conditions of each setting with the baseline.

    Args:
        frames: finished runs, one for each setting, condition and seed, and their evaluations.
        options: what is compared.
        apart: cells that can't be paired with the baseline's, as their seeds give other data.
    """
    results = results_by_seed(frames, options)
    oracles = {cell for cell, rows in _cells(frames.runs).items() if rows["oracle"].any()}
    differences = {}
    for (setting, condition), values in results.items():
        base = results.get((setting, options.baseline)) if options.baseline is not None else None
        if base is not None and condition != options.baseline and (setting, condition) not in apart:
            differences[setting, condition] = paired_difference(values, base, options.sign)
    rules = options.rules
    tested = {
        cell: difference.p if difference.n >= rules.seeds else math.nan
        for cell, difference in differences.items()
        if cell not in oracles
    }
    adjusted = adjust_for_claim(tested, IN_SETTING, options.correction)
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


def results_by_seed(frames: Frames, options: Options) -> dict[Cell, dict[int, float]]:
    """Return the result of each run, by cell and seed; NaN where its metric was never evaluated after training."""
    curves = curves_by_run(frames)
    results: dict[Cell, dict[int, float]] = {}
    for cell, rows in _cells(frames.runs).items():
        clocks = rows[CLOCK] if CLOCK in rows else rows["seed"] * math.nan
        results[cell] = {
            int(seed): _result(curves.get(run), options, float(clock))
            for run, seed, clock in sorted(zip(rows["run"], rows["seed"], clocks, strict=True), key=lambda row: row[1])
        }
    return results


def curves_by_run(frames: Frames) -> "dict[str, pd.DataFrame]":
    """Return the curves of each run."""
    return {str(run): rows for run, rows in frames.curves.groupby("run")} if len(frames.curves) else {}


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
    known = sorted(difference.std for difference in tests if math.isfinite(difference.std))
    spread, nan = (known[len(known) // 2] if known else math.nan), math.nan
    n = max((difference.n for difference in tests), default=0)
    runs = frames.runs
    base = runs[(runs["setting"] == setting) & (runs["condition"] == options.baseline)]["run"]
    slopes = []
    for run in base:
        rows = evaluations(curves[run], options.metric, options.horizon) if run in curves else None
        if rows is not None and len(rows):
            slopes.append(late_slope(rows["round"].to_numpy(), rows[options.metric].to_numpy(), options.horizon))
    return Setting(
        family=sum(math.isfinite(d.p) and d.n >= options.rules.seeds for d in tests),
        seeds_needed=count_seeds(spread, options.rules.worth) if options.rules.worth else None,
        shown=least_difference(spread, n) if spread > 0 else nan,
        slope=float(np.mean(slopes)) if slopes else nan,
    )


def _window(curves: "Collection[pd.DataFrame]", options: Options) -> tuple[int, int]:
    """Return the first and last round of the window of the run with the latest evaluation; (0, 0) without any."""
    last = np.empty(0)
    for curve in curves:
        steps = evaluations(curve, options.metric, options.horizon)["round"].to_numpy(dtype=float)
        if len(steps) and (not len(last) or steps[-1] > last[-1]):
            last = steps
    if not len(last):
        return 0, 0
    averaged = last[late_window(last, options.horizon)]
    return (int(averaged[0]), int(averaged[-1])) if len(averaged) else (0, 0)


def _rank(entry: Entry, sign: int) -> float:
    return -sign * entry.mean.mean if math.isfinite(entry.mean.mean) else math.inf


def _cells(runs: "pd.DataFrame") -> "dict[Cell, pd.DataFrame]":
    return {(str(s), str(c)): rows for (s, c), rows in runs.groupby(["setting", "condition"], sort=False)}


@dataclass(frozen=True)
class Spent:
    """What the runs of a cell had spent of one cost by their end.

    Attributes:
        mean: over seeds, in seconds, bytes or FLOPs.
        times: sum over common seeds, over that of the baseline; NaN without a baseline.
    """

    mean: float
    times: float


def count_costs(frames: Frames, baseline: str | None, apart: Collection[Cell] = ()) -> dict[str, dict[Cell, Spent]]:
    """Return what each cell had spent, by the name of the cost; a cost that no run has is left out."""
    counted: dict[str, dict[Cell, Spent]] = {}
    for cost in COSTS:
        if cost not in frames.runs or not (frames.runs[cost] > 0).any():
            continue
        by_seed = {cell: dict(zip(rows["seed"], rows[cost], strict=True)) for cell, rows in _cells(frames.runs).items()}
        counted[cost] = {}
        for cell, values in by_seed.items():
            base = by_seed.get((cell[0], baseline or ""), {}) if cell[1] != baseline and cell not in apart else {}
            common = [seed for seed in values if seed in base]
            total = sum(base[seed] for seed in common)
            times = sum(values[seed] for seed in common) / total if total > 0 else math.nan
            counted[cost][cell] = Spent(float(np.mean(list(values.values()))), times)
    return counted
