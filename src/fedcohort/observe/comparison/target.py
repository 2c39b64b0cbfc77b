"""Which is faster to a target: what each run had spent when its metric first met it, and how many times as fast it is.

A run meets the target on seed s at the first round that measured a value at least as good. Its time T_s is what the
axis reads there: virtual seconds, bytes down and up, client operations or rounds. A run that never met it is censored:
T_s is more than what the axis read at its last measurement, C_s, and nothing else is known.

    time of a cell      the least t by which half of its n seeds have met the target: the ceil(n / 2)-th smallest T_s.
                        It lies between that of (T_s, or C_s) and that of (T_s, or inf); both are equal, or it is "> t"
    speed-up            r_s = T_s of the baseline / T_s of the cell, over common seeds; its geometric mean, with the
                        interval and the paired t-test of `table.difference` on log r_s
    censored pairs      baseline censored: r_s > C / T;  cell censored: r_s < T / C;  both: r_s may be anything.
                        Where there are any, the median (of an even number the geometric mean of the middle two) is
                        bounded instead of the mean, by that of the lower and of the upper ends; no interval and no
                        test can be given

Where the target is best_of:a,b (`goals`), speed-ups are also over the run that set it on each seed, which has always
met it. (FedBalancer's Table 1 has these.)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedcohort.errors import OptionError
from fedcohort.observe.comparison import goals
from fedcohort.observe.comparison.cells import Cell
from fedcohort.observe.comparison.goals import Goal
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.series import Series
from fedcohort.observe.comparison.table import Difference, base_of, difference, mean
from fedcohort.observe.comparison.tracked import label
from fedcohort.observe.reached import find_first

ROUND = 1e-9  # of a share: two times that close are one


@dataclass(frozen=True)
class Time:
    """When a run met its target.

    Attributes:
        low: the time, or, where it never did, how far it came without.
        met: whether it did.
    """

    low: float
    met: bool

    @property
    def high(self) -> float:
        """The time, infinite where it isn't known."""
        return self.low if self.met else math.inf


@dataclass(frozen=True)
class SpeedUp:
    """How many times as fast as the baseline, over common seeds.

    Attributes:
        low, high: the geometric mean, twice; where pairs are censored, the median lies between them: 0 and inf where
            nothing is known.
        logs: of log r_s with its interval and its test, None where a pair is censored or none can be taken.
        n, censored: pairs, and those with a side that never met the target.
        why: what can't be given, and the reason.
    """

    low: float
    high: float
    logs: Difference | None
    n: int
    censored: int
    why: str = ""


@dataclass(frozen=True)
class TargetEntry:
    """One cell of the table.

    Attributes:
        times: by seed.
        low, high: the time of the cell lies between them.
        speed_up: None where the cell has no baseline.
        over_best: over the run that set the target on each seed; None where it is a number.
        odd, yardstick: as in `table.Entry`.
    """

    times: Mapping[int, Time]
    low: float
    high: float
    speed_up: SpeedUp | None
    over_best: SpeedUp | None
    odd: bool
    yardstick: bool

    @property
    def met(self) -> int:
        """Seeds that met the target."""
        return sum(time.met for time in self.times.values())


@dataclass(frozen=True)
class TargetTable:
    """Times to a target.

    Attributes:
        goals: the targets, by cell and seed.
        notes: what has no target.
        sign: -1 where less of the metric is better.
    """

    rows_name: str
    cols_name: str | None
    metric: str
    axis: str
    target: str
    sign: int
    baseline: str | None
    rows: Sequence[str]
    cols: Sequence[str]
    entries: Mapping[Cell, TargetEntry]
    goals: Mapping[Cell, Mapping[int, Goal]]
    notes: Sequence[str] = field(default_factory=list)


def tabulate(
    found: Sorted,
    histories: Mapping[Cell, Mapping[int, Series]],
    names: tuple[str, str | None, str],
    target: str,
    axis: str,
    baseline: str | None,
    sign: int,
) -> TargetTable:
    """Time the runs of each cell. names: rows, cols, metric. sign: -1 where less of the metric is better.

    Raises `OptionError` for a target that can't be read, and for an axis that a run has no reading of.
    """
    wanted = goals.parse(target, names[2])
    _check_axis(found, histories, axis)
    set_goals, notes = goals.set_all(found, histories, wanted, baseline, sign)
    times = {
        cell: {seed: _time(of[seed], goal.value, axis, sign) for seed, goal in set_goals[cell].items()}
        for cell, of in histories.items()
    }
    entries = {}
    for cell, of in times.items():
        base = base_of(cell, baseline, found)
        compared = base is not None and base in times and base != cell
        best = {seed: times[goal.by][seed] for seed, goal in set_goals[cell].items() if goal.by is not None}
        entries[cell] = TargetEntry(
            of,
            *_half(of),
            speed_up(of, times[base]) if compared and base is not None else None,
            None if isinstance(wanted, float) else speed_up(of, best),
            cell in found.odd,
            cell in found.yardsticks,
        )
    rows, cols, metric = names
    shape = (rows, cols, metric, axis, target, sign, baseline, found.rows, found.cols)
    return TargetTable(*shape, entries, set_goals, notes)


def _check_axis(found: Sorted, histories: Mapping[Cell, Mapping[int, Series]], axis: str) -> None:
    for cell, of in histories.items():
        for seed, series in of.items():
            x = series.along(axis)
            run = found.cells[cell][seed]
            if axis == "virtual_s" and not (np.isfinite(x).all() and (x > 0).any()):
                device = f" (device={run.params['device']})" if "device" in run.params else ""
                raise OptionError(f"axis=virtual_s needs a clock, and {label(run)} has none{device}")
            if not np.isfinite(x).all():
                raise OptionError(f"axis={axis} isn't known of {label(run)}: it was never logged")


def _time(series: Series, goal: float, axis: str, sign: int) -> Time:
    at = find_first(series.value, goal, sign)
    x = series.along(axis)
    return Time(float(x[at]), met=True) if at is not None else Time(float(x[-1]), met=False)


def _half(times: Mapping[int, Time]) -> tuple[float, float]:
    """Between which two the time lies by which half of the seeds have met the target."""
    if not times:
        return math.nan, math.nan
    k = math.ceil(len(times) / 2) - 1
    low, high = (sorted(getattr(time, end) for time in times.values())[k] for end in ("low", "high"))
    return low, high


def speed_up(times: Mapping[int, Time], base: Mapping[int, Time]) -> SpeedUp:
    """How many times as fast as the baseline, by the rules of the module."""
    common = sorted(set(times) & set(base))
    pairs = [(base[seed], times[seed]) for seed in common]
    n, censored = len(pairs), sum(not (b.met and t.met) for b, t in pairs)
    if not n:
        return SpeedUp(0.0, math.inf, None, 0, 0, "no common seeds")
    if any(time.low <= 0 for pair in pairs for time in pair):
        return SpeedUp(0.0, math.inf, None, n, censored, "nothing had been spent when a run met its target: no ratio")
    low = [math.log(b.low / t.high) if t.met else -math.inf for b, t in pairs]
    high = [math.log(b.high / t.low) if b.met else math.inf for b, t in pairs]
    if censored:
        least, most = (math.exp(float(np.median(ends))) for ends in (low, high))
        return SpeedUp(least, most, None, n, censored, f"{censored} of {n} pairs are censored: no interval, no test")
    logs = difference(
        {seed: math.log(base[seed].low) for seed in common}, {seed: math.log(times[seed].low) for seed in common}
    )
    middle = math.exp(mean(low).mean)
    return SpeedUp(middle, middle, logs, n, 0, logs.why.replace("difference", "ratio"))
