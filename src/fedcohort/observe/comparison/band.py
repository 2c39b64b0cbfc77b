"""Curves of several seeds as one: averaged at common rounds or at equal cost, by itself or against the baseline's.

At equal cost a run is, between two rounds, as good as after the first. A difference is paired: on each seed the curve
minus the baseline's, at the same round or the same cost; its interval is t_{.975, n-1} s / sqrt(n) at each point.
Between two rounds it is taken on the line that joins them: on steps, which end at other times for each run, it would
jump with every round of either.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.observe.comparison.series import Curve, Series
from fedcohort.observe.comparison.table import LEVEL

POINTS = 200  # where curves of runs that were measured at other times are compared
ROUNDS = "rounds"


@dataclass(frozen=True)
class Band:
    """Mean and standard deviation over seeds at x, each [n_points].

    Attributes:
        std: of ddof 1, NaN for one seed.
        n: seeds.
    """

    x: Curve
    mean: Curve
    std: Curve
    n: int

    @property
    def half(self) -> Curve:
        """Half of the 95 % interval of the mean, NaN for one seed."""
        from scipy import stats

        if self.n < 2:
            return self.std
        half: Curve = float(stats.t.ppf((1 + LEVEL) / 2, self.n - 1)) * self.std / math.sqrt(self.n)
        return half


NOTHING = Band(np.empty(0), np.empty(0), np.empty(0), 0)


def average(series: Sequence[Series], axis: str) -> Band:
    """Average over seeds along `axis`, one of `series.AXES`."""
    if axis == ROUNDS:
        return by_round(series)
    return by_cost([each.along(axis) for each in series], [each.value for each in series])


def by_round(series: Sequence[Series]) -> Band:
    """Average over seeds at the rounds that all of them measured."""
    common = _common(series)
    return _band(common, [_at_rounds(each, common) for each in series])


def by_cost(x: Sequence[Curve], values: Sequence[Curve]) -> Band:
    """Average over seeds at even points of the cost, up to where the first of the runs ends."""
    grid = _grid(x)
    return _band(grid, [_at_costs(at, value, grid) for at, value in zip(x, values, strict=True)])


def subtract(own: Mapping[int, Series], base: Mapping[int, Series], axis: str) -> Band:
    """Average the differences to the baseline over common seeds; both by seed."""
    pairs = [(own[seed], base[seed]) for seed in sorted(set(own) & set(base))]
    if not pairs:
        return NOTHING
    every = [each for pair in pairs for each in pair]
    if axis == ROUNDS:
        common = _common(every)
        return _band(common, [_at_rounds(mine, common) - _at_rounds(theirs, common) for mine, theirs in pairs])
    grid = _grid([each.along(axis) for each in every])
    found = [[_between(each.along(axis), each.value, grid) for each in pair] for pair in pairs]
    return _band(grid, [mine - theirs for mine, theirs in found])


def _common(series: Sequence[Series]) -> Curve:
    return np.array(sorted(set.intersection(*(set(each.rounds) for each in series))), dtype=float)


def _grid(x: Sequence[Curve]) -> Curve:
    """Even points of the span that all have in common; none where one of them has no reading."""
    known = [at[np.isfinite(at)] for at in x]
    if not all(map(len, known)):
        return np.empty(0)
    low, high = max(float(at[0]) for at in known), min(float(at[-1]) for at in known)
    return np.linspace(low, high, POINTS) if high > low else np.empty(0)


def _at_rounds(series: Series, common: Curve) -> Curve:
    found: Curve = series.value[np.isin(series.rounds, common)]
    return found


def _at_costs(x: Curve, value: Curve, grid: Curve) -> Curve:
    if not len(grid):
        return np.empty(0)
    known = np.isfinite(x)
    found: Curve = value[known][np.searchsorted(x[known], grid, side="right") - 1]
    return found


def _between(x: Curve, value: Curve, grid: Curve) -> Curve:
    known = np.isfinite(x)
    found: Curve = np.interp(grid, x[known], value[known]) if len(grid) else np.empty(0)
    return found


def _band(x: Curve, values: Sequence[Curve]) -> Band:
    table = np.stack(values)
    std = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(table.shape[1], np.nan)
    return Band(x, table.mean(axis=0), std, len(table))
