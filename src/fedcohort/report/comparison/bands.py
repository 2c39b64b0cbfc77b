"""Average the curves of several seeds: the mean with its 95 % interval, by round or by cost, or minus the baseline's.

A difference is paired: for each seed, the curve minus the baseline's at the same round or cost. Curves are interpolated
linearly between evaluations, because runs are evaluated at different costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.results.compare import Cell, Options, curves_by_run, select_evaluations
from fedcohort.results.difference import t_test
from fedcohort.results.frame import Frames

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("run", "setting", "condition", "seed")
ROUNDS = "round"  # column of the curves
POINTS = 200  # points at which runs with different costs are compared
Points = Float64[np.ndarray, "_n"]
BySeed = Mapping[int, "pd.DataFrame"]
Curves = Mapping[Cell, BySeed]


@dataclass(frozen=True)
class Band:
    """Mean over seeds at x, and half the width of its 95 % interval (NaN for one seed), each [points]."""

    x: Points
    mean: Points
    half: Points


EMPTY = Band(np.empty(0), np.empty(0), np.empty(0))


def curves_by_cell(frames: Frames, options: Options) -> dict[Cell, dict[int, "pd.DataFrame"]]:
    """Return the evaluations of each run, with the metric in the column `value`, by cell and seed."""
    curves, runs = curves_by_run(frames), frames.runs
    by_cell: dict[Cell, dict[int, pd.DataFrame]] = {}
    for run, setting, condition, seed in zip(*(runs[name] for name in KEYS), strict=True):
        if run in curves and len(rows := select_evaluations(curves[run], options)):
            by_seed = by_cell.setdefault((str(setting), str(condition)), {})
            by_seed[int(seed)] = rows.rename(columns={options.metric: "value"})
    return by_cell


def average(curves: BySeed, axis: str) -> Band:
    """Return the mean over seeds; axis: column of the curves."""
    rows = list(curves.values())
    x = _points(rows, axis)
    return _band(x, [_values_at(curve, axis, x) for curve in rows])


def subtract(curves: BySeed, base: BySeed, axis: str, options: Options) -> Band:
    """Return the mean difference to the baseline over common seeds, positive where the curve is better."""
    pairs = [(curves[seed], base[seed]) for seed in sorted(set(curves) & set(base))]
    x = _points([rows for pair in pairs for rows in pair], axis)
    return _band(x, [options.sign * (_values_at(curve, axis, x) - _values_at(base, axis, x)) for curve, base in pairs])


def _points(curves: "Sequence[pd.DataFrame]", axis: str) -> Points:
    """Return the rounds that all runs evaluated, or equidistant points of the range of costs that all runs cover."""
    if not curves:
        return np.empty(0)
    if axis == ROUNDS:
        common = set.intersection(*(set(rows[ROUNDS]) for rows in curves))
        return np.array(sorted(common), dtype=float)
    low, high = max(float(rows[axis].iloc[0]) for rows in curves), min(float(rows[axis].iloc[-1]) for rows in curves)
    return np.linspace(low, high, POINTS) if high > low else np.empty(0)


def _values_at(rows: "pd.DataFrame", axis: str, x: Points) -> Points:
    values: Points = np.interp(x, rows[axis].to_numpy(dtype=float), rows["value"].to_numpy(dtype=float))
    return values


def _band(x: Points, values: Sequence[Points]) -> Band:
    if not len(x) or not values:
        return EMPTY
    table = np.stack(values, axis=1)  # [points, seeds]
    half = np.full(len(x), np.nan)
    if table.shape[1] > 1:
        with np.errstate(divide="ignore", invalid="ignore"):  # equal values have no spread
            half = t_test(table)[0]
    return Band(x, table.mean(axis=1), half)
