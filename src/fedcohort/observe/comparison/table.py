"""The numbers of a comparison: means over seeds with their intervals, and paired differences to a baseline.

mean +- t_{.975, n-1} s / sqrt(n) is the 95 % confidence interval of a mean, s with ddof 1; of a difference it is the
same over the differences of runs with equal seeds, which share data, partition and initial model. The test is the
paired t-test of scipy.stats, two-sided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedcohort.observe.comparison.cells import Cell, spell
from fedcohort.observe.comparison.likeness import find_newest_sweep, find_unlike
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.ranges import refuse

LOWER = (  # endings of metrics of which less is better
    *("loss", "_var", "share_max", "dropped_nonfinite", "dropped_step", "class_imbalance"),
    *("waited_s", "closed_s", "announced_s"),
)
COSTS = ("time/", "comm/", "comp/", "attack/")  # beginnings of others: what liars got is a cost, too
LEVEL = 0.95
SAME = 1e-6  # of the values: less spread of differences is that of the single precision in which curves are kept


@dataclass(frozen=True)
class Mean:
    """The mean over n values, and how sure it is.

    Attributes:
        std: ddof 1, NaN for fewer than two.
        half: of the 95 % interval, NaN likewise.
    """

    mean: float
    std: float
    n: int
    half: float

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half


@dataclass(frozen=True)
class Difference:
    """The difference to the baseline over common seeds.

    Attributes:
        over: no interval where all seeds have the same difference: no spread is known, and not that there is none.
        p: of the paired t-test, NaN where it can't be done.
        why: the reason.
    """

    over: Mean
    p: float
    why: str = ""


@dataclass(frozen=True)
class Entry:
    """One cell of the table.

    Attributes:
        seeds: those averaged.
        difference: None where the cell has no baseline.
        best: its interval is clear of all others in the column.
        odd: it differs from them in more than its row, and so can't be the best.
        yardstick: it reads what no server can know.
        unlike: the options in which it differs from its baseline's cell beside what is compared.
    """

    value: Mean
    seeds: Sequence[int]
    difference: Difference | None
    best: bool
    odd: bool
    yardstick: bool = False
    unlike: Sequence[str] = ()


@dataclass(frozen=True)
class Table:
    """A comparison of runs.

    Attributes:
        rows_name, cols_name: what is compared.
        baseline: None without one.
        sign: -1 where less of the metric is better, else 1.
        newest: the newest of the sweeps that the runs are of, None where one sweep has all of them.
    """

    rows_name: str
    cols_name: str | None
    metric: str
    baseline: str | None
    rows: Sequence[str]
    cols: Sequence[str]
    entries: Mapping[Cell, Entry]
    notes: Sequence[str]
    sign: int
    newest: str | None = None


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of `values` with its interval; a value that isn't finite makes all of it NaN or infinite."""
    from scipy import stats

    x = np.asarray(values, dtype=float)
    n = len(x)
    with np.errstate(invalid="ignore"):  # between infinite values
        std = (float(x.std(ddof=1)) if np.ptp(x) else 0.0) if n > 1 else math.nan  # 0 where rounding says 1e-17
    half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * std / math.sqrt(n) if n > 1 else math.nan
    return Mean(float(x.mean()) if n else math.nan, std, n, half)


def difference(values: Mapping[int, float], base: Mapping[int, float]) -> Difference:
    """Return `values` minus `base`, both by seed, with the paired t-test over common seeds."""
    from scipy import stats

    common = sorted(set(values) & set(base))
    gaps = [values[seed] - base[seed] for seed in common]
    over = mean(gaps)
    if len(common) < 2:
        return Difference(over, math.nan, f"n={len(common)} common seeds: no interval, no test")
    if not math.isfinite(over.mean):
        return Difference(over, math.nan, "a value is not finite: no interval, no test")
    if over.std <= SAME * max(
        abs(of[seed]) for of in (values, base) for seed in common
    ):  # t is 0 / 0, or infinite but for rounding
        why = "the same difference for every seed: no interval, no test"
        return Difference(replace(over, half=math.nan), math.nan, why)
    test = stats.ttest_rel([values[seed] for seed in common], [base[seed] for seed in common])
    return Difference(over, float(test.pvalue))


def lower_is_better(metric: str) -> bool:
    return metric.startswith(COSTS) or metric.endswith(LOWER) or "loss" in metric.rpartition("/")[2]


def tabulate(found: Sorted, rows: str, cols: str | None, metric: str, baseline: str | None, better: str) -> Table:
    """Average the runs of each cell, and compare the cells.

    better: "high", "low", or "auto" by the metric's name. Raises `OptionError` for a baseline that isn't there.
    """
    known = {
        cell: {seed: run.metrics[metric] for seed, run in runs.items() if metric in run.metrics}
        for cell, runs in found.cells.items()
    }
    values = {cell: of for cell, of in known.items() if of}
    if baseline is not None and baseline not in (*found.rows, *found.cols):
        there = [f"{rows} ({', '.join(found.rows)})", *([f"{cols} ({', '.join(found.cols)})"] if cols else [])]
        raise refuse("baseline", f"a value of {' or '.join(there)}", baseline)
    means = {cell: mean(list(of.values())) for cell, of in values.items()}
    sign = sign_of(better, metric)
    notes, apart = list(found.notes), list[str]()
    entries = {}
    for cell, of in values.items():
        base = base_of(cell, baseline, found)
        gap = difference(of, values[base]) if base in values and base != cell and base is not None else None
        entries[cell] = Entry(
            means[cell],
            list(of),
            gap,
            cell not in found.odd and _clear(cell, means, sign),
            cell in found.odd,
            cell in found.yardsticks,
            find_unlike(cell, base, found, rows if baseline in found.rows else str(cols)) if gap and base else (),
        )
        if base is None and baseline is not None:
            apart.append(spell(cell))
        if base is not None and base not in values:
            notes.append(f"no baseline: there are no runs of {' + '.join(filter(None, base))}")
    if apart:
        notes.append(f"not compared with {baseline}: {', '.join(apart)}, of another federation (see what also differs)")
    unique, newest = list(dict.fromkeys(notes)), find_newest_sweep(found)
    return Table(rows, cols, metric, baseline, found.rows, found.cols, entries, unique, sign, newest)


def sign_of(better: str, metric: str) -> int:
    """-1 where less of the metric is better: better=low, or auto by the metric's name."""
    return -1 if better == "low" or (better == "auto" and lower_is_better(metric)) else 1


def base_of(cell: Cell, baseline: str | None, found: Sorted) -> Cell | None:
    """The cell that another is compared with: the baseline's, in its own column or row.

    None without a baseline, and where that is of another federation: equal seeds are no pairs there.
    """
    if baseline is None:
        return None
    base = counterpart(cell, baseline, found.rows)
    return None if is_apart(cell, base, found) else base


def counterpart(cell: Cell, baseline: str, rows: Sequence[str]) -> Cell:
    """The baseline's cell in the cell's column, or in its row where the baseline is a column."""
    return (baseline, cell[1]) if baseline in rows else (cell[0], baseline)


def is_apart(cell: Cell, base: Cell, found: Sorted) -> bool:
    """Whether two cells that have runs are of different federations."""
    return base in found.cells and found.federations.get(cell) != found.federations.get(base)


def _clear(cell: Cell, means: Mapping[Cell, Mean], sign: int) -> bool:
    """Whether it is the best of its column and no other interval there reaches its own."""
    others = [other for key, other in means.items() if key[1] == cell[1] and key != cell]
    own = means[cell]
    low = sign * own.mean - own.half
    return bool(others) and all(low > sign * other.mean + other.half for other in others)
