"""The figures of a comparison: means with their intervals, and curves with a band of one standard deviation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.observe.comparison import verdict
from fedcohort.observe.comparison.runs import Cell, Sorted, spell
from fedcohort.observe.comparison.series import FLOPS, Curve, Series
from fedcohort.observe.comparison.shown import MetricUnit, unit, unit_of
from fedcohort.observe.comparison.table import Table
from fedcohort.observe.figure import style
from fedcohort.observe.reached import DOWN

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.PURPLE, style.SKY, style.BLACK)
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SIDES = {1: (style.BLUE, "o"), 0: (style.GREY, "D"), -1: (style.VERMILLION, "s")}  # of a verdict
POINTS = 200  # where curves of runs that were measured at other times are compared


@dataclass(frozen=True)
class Band:
    """Mean and standard deviation over seeds at x, each [n].

    The deviation is that of ddof 1, NaN for one seed.
    """

    x: Curve
    mean: Curve
    std: Curve


def by_round(series: Sequence[Series]) -> Band:
    """Average over seeds at the rounds that all of them measured."""
    common = np.array(sorted(set.intersection(*(set(each.rounds) for each in series))), dtype=float)
    return _band(common, [each.value[np.isin(each.rounds, common)] for each in series])


def by_cost(x: Sequence[Curve], values: Sequence[Curve]) -> Band:
    """Average over seeds at even points of the cost, up to where the first of the runs ends.

    In between a run is as good as its last finished round.
    """
    known = [(at[ok], value[ok]) for at, value in zip(x, values, strict=True) if (ok := np.isfinite(at)).any()]
    if len(known) < len(x):
        return Band(np.empty(0), np.empty(0), np.empty(0))
    low, high = max(float(at[0]) for at, _ in known), min(float(at[-1]) for at, _ in known)
    grid = np.linspace(low, high, POINTS) if high > low else np.empty(0)
    return _band(grid, [value[np.searchsorted(at, grid, side="right") - 1] for at, value in known])


def _band(x: Curve, values: Sequence[Curve]) -> Band:
    table = np.stack(values)
    std = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(table.shape[1], np.nan)
    return Band(x, table.mean(axis=0), std)


def curves(
    histories: Mapping[Cell, Mapping[int, Series]],
    found: Sorted,
    metric: str,
    path: Path,
    goal: float | None = None,
) -> None:
    """Draw a row of panels for each column of the table: by rounds, by virtual time, by bytes, by computation.

    goal: a target, where it is one number.
    """
    every = [series for of in histories.values() for series in of.values() if len(series.rounds)]
    u = unit_of(metric, max((float(np.nanmax(series.value)) for series in every), default=1.0))
    size, clock = style.virtual_unit([float(series.virtual_s[-1]) for series in every])
    load, work = (unit_of(name, _largest(every, axis)) for name, axis in ((DOWN, "bytes"), (FLOPS, "client_flops")))
    axes_of = (("virtual_s", 1 / size), ("bytes", load.factor), ("client_flops", work.factor))
    height = 0.9 + 2.9 * len(found.cols) + 0.25 * len(found.rows)
    figure = _figure(f"{metric}: mean and one standard deviation over seeds", found, 15.5, height)
    grid = figure.subplots(len(found.cols), 1 + len(axes_of), sharey="row", squeeze=False)
    for i, col in enumerate(found.cols):
        for j, row in enumerate(found.rows):
            series = [each for each in histories.get((row, col), {}).values() if len(each.rounds)]
            if series:
                look = _look(j, row)
                _line(grid[i, 0], by_round(series), 1.0, u.factor, look)
                for axes, (axis, factor) in zip(grid[i, 1:], axes_of, strict=True):
                    band = by_cost([each.along(axis) for each in series], [each.value for each in series])
                    _line(axes, band, factor, u.factor, look)
        grid[i, 0].set_ylabel(_axis(f"{col}: {metric}" if col else metric, u))
        for axes in grid[i]:
            style.tidy(axes)
            if goal is not None:
                axes.axhline(goal * u.factor, color=style.GREY, linewidth=1.0, linestyle="--", label="target")
        style.whole_numbers(grid[i, 0].xaxis)
    costs = (f"bytes up and down, {load.name}", f"client computation, {work.name}")
    for axes, name in zip(grid[-1], ("communication round", f"virtual time, {clock}", *costs), strict=True):
        axes.set_xlabel(name)
    style.legend(figure, _handles(grid.flat), 5)
    style.save(figure, path)


def _largest(every: Sequence[Series], axis: str) -> float:
    last = [float(series.along(axis)[-1]) for series in every]
    return max((value for value in last if np.isfinite(value)), default=0.0)


def intervals(table: Table, found: Sorted, path: Path) -> None:
    """A point a cell, its 95 % interval beside it."""
    u = unit(table)
    height = 1.5 + 0.32 * len(table.rows) * max(1, len(table.cols))
    figure = _figure(f"{table.metric}: mean and 95 % interval over seeds", found, 7.5, max(height, 2.6))
    axes = figure.subplots()
    for i, row in enumerate(table.rows):
        for j, col in enumerate(table.cols):
            entry = table.entries.get((row, col))
            if entry is None:
                continue
            y = i + (0.6 * (j + 0.5) / len(table.cols) - 0.3 if len(table.cols) > 1 else 0.0)
            look: dict[str, Any] = {"color": COLOURS[j % len(COLOURS)], "fmt": MARKERS[j % len(MARKERS)], "capsize": 3}
            half = [entry.value.half * u.factor] if np.isfinite(entry.value.half) else None
            axes.errorbar([entry.value.mean * u.factor], [y], xerr=half, label=col or "mean", **look)
    axes.set_yticks(range(len(table.rows)), table.rows)
    axes.invert_yaxis()
    axes.set_xlabel(_axis(table.metric, u))
    style.tidy(axes)
    if len(table.cols) > 1:
        style.legend(figure, _handles([axes]), 4)
    style.save(figure, path)


def forest(table: Table, found: Sorted, path: Path) -> None:
    """Draw the paired differences to the baseline, the best first, with their 95 % intervals and a line at zero."""
    gaps = verdict.list_gaps(table)
    several = len({gap.base for gap in gaps}) > 1
    height = max(1.7 + 0.34 * len(gaps), 2.4)
    figure = _figure(f"{table.metric}: paired difference to {table.baseline}, 95 % interval", found, 7.5, height)
    axes = figure.subplots()
    axes.axvline(0.0, color=style.BLACK, linewidth=1.0)
    for y, gap in enumerate(gaps):
        half = [[gap.mean - gap.low], [gap.high - gap.mean]] if np.isfinite(gap.low) else None
        colour, marker = SIDES[gap.side]
        label = f"{verdict.WORDS[gap.side]} {table.baseline}"
        axes.errorbar([gap.mean], [y], xerr=half, color=colour, fmt=marker, capsize=3, label=label)
    names = [spell(gap.cell) if several else gap.cell[0 if table.baseline in table.rows else 1] for gap in gaps]
    axes.set_yticks(range(len(gaps)), [f"{name} (n={gap.n})" for name, gap in zip(names, gaps, strict=True)])
    axes.set_ylim(len(gaps) - 0.4, -0.6)
    better = "less is better" if table.sign < 0 else "more is better"
    axes.set_xlabel(f"{', '.join(filter(None, (f'difference of {table.metric}', verdict.points(table))))}; {better}")
    style.tidy(axes)
    style.legend(figure, _handles([axes]), 3)
    style.save(figure, path)


def _figure(what: str, found: Sorted, width: float, height: float) -> "Figure":
    """Make a figure like those of a run, which says how many runs it is of, and not which."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(width, height))
    canvas.set_layout_engine("constrained", rect=(0, 0, 1, 1 - style.HEAD / height))
    counts = sorted({len(runs) for runs in found.cells.values()})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"
    of = f"{sum(map(len, found.cells.values()))} runs, {seeds} a cell"
    left = 0.12 / width
    canvas.text(left, 1 - 0.12 / height, what, ha="left", va="top", fontsize=12, fontweight="bold", color=style.BLACK)
    canvas.text(left, 1 - 0.37 / height, of, ha="left", va="top", fontsize=style.SMALL, color="#555555")
    return canvas


def _look(position: int, row: str) -> dict[str, Any]:
    dash = DASHES[position // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[position % len(COLOURS)], "linestyle": dash, "linewidth": 1.7, "label": row}


def _line(axes: "Axes", band: Band, x_factor: float, y_factor: float, look: Mapping[str, Any]) -> None:
    if not len(band.x):
        return
    x, mean, std = band.x * x_factor, band.mean * y_factor, band.std * y_factor
    axes.plot(x, mean, **look)
    if np.isfinite(std).any():
        axes.fill_between(x, mean - std, mean + std, color=look["color"], alpha=0.16, linewidth=0)


def _axis(name: str, u: MetricUnit) -> str:
    return f"{name}, {u.name}" if u.name else name


def _handles(panels: "Iterable[Axes]") -> "list[Artist]":
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values())
