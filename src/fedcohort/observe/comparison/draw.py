"""The figures of a comparison that have a line a cell: means with their intervals, and paired differences."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.observe.comparison import verdict
from fedcohort.observe.comparison.cells import spell
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.shown import MetricUnit, unit
from fedcohort.observe.comparison.table import Table
from fedcohort.report.figure import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.PURPLE, style.SKY, style.BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
NARROW = 5.6  # inches: a telephone shows it whole
SIDES = {1: (style.BLUE, "o"), 0: (style.GREY, "D"), -1: (style.VERMILLION, "s")}  # of a verdict


def intervals(table: Table, found: Sorted, path: Path) -> None:
    """A point a cell, its 95 % interval beside it."""
    u = unit(table)
    height = 1.5 + 0.32 * len(table.rows) * max(1, len(table.cols))
    canvas = figure(f"{table.metric}: mean and 95 % interval over seeds", found, NARROW, max(height, 2.6))
    axes = canvas.subplots()
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
    axes.set_ylim(len(table.rows) - 0.4, -0.6)
    if u.name == "%":  # an interval of two seeds goes far beyond it
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, -1.0), min(high, 101.0))
    axes.set_xlabel(name_axis(table.metric, u))
    style.tidy(axes)
    if len(table.cols) > 1:
        style.legend(canvas, list_handles([axes]), 4)
    style.save(canvas, path)


def forest(table: Table, found: Sorted, path: Path) -> None:
    """Draw the paired differences to the baseline, the best first, with their 95 % intervals and a line at zero.

    A hollow marker says nothing of what is compared: it is of one seed, or its runs differ in more.
    """
    gaps = verdict.list_gaps(table)
    several = len({gap.base for gap in gaps}) > 1
    height = max(1.7 + 0.34 * len(gaps), 2.4)
    canvas = figure(f"{table.metric}: paired difference to {table.baseline}, 95 % interval", found, NARROW, height)
    axes = canvas.subplots()
    axes.axvline(0.0, color=style.BLACK, linewidth=1.0)
    for y, gap in enumerate(gaps):
        half = [[gap.mean - gap.low], [gap.high - gap.mean]] if np.isfinite(gap.low) else None
        colour, marker = SIDES[gap.side]
        label, filled = f"{gap.word} {table.baseline}", "full" if gap.n > 1 and not gap.unlike else "none"
        label += ", but not like with like" if gap.n > 1 and gap.unlike else ""
        axes.errorbar([gap.mean], [y], xerr=half, color=colour, fmt=marker, fillstyle=filled, capsize=3, label=label)
    names = [spell(gap.cell) if several else gap.cell[0 if table.baseline in table.rows else 1] for gap in gaps]
    axes.set_yticks(range(len(gaps)), [f"{name} (n={gap.n})" for name, gap in zip(names, gaps, strict=True)])
    axes.set_ylim(len(gaps) - 0.4, -0.6)
    better = "less is better" if table.sign < 0 else "more is better"
    axes.set_xlabel(f"{', '.join(filter(None, (f'difference of {table.metric}', verdict.points(table))))}; {better}")
    style.tidy(axes)
    style.legend(canvas, list_handles([axes]), 2)
    style.save(canvas, path)


def figure(what: str, found: Sorted, width: float, height: float, *, constrained: bool = True) -> "Figure":
    """Make a figure like those of a run, which says how many runs it is of, and not which.

    constrained: let matplotlib find the places of panels, which takes seconds for dozens of them.
    """
    counts = sorted({len(runs) for runs in found.cells.values()})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"
    note = f"{sum(map(len, found.cells.values()))} runs, {seeds} a cell"
    return style.titled(what, note, width, height, constrained=constrained)


def name_axis(name: str, u: MetricUnit) -> str:
    """`test/acc, %`."""
    return f"{name}, {u.name}" if u.name else name


def list_handles(panels: "Iterable[Axes]") -> "list[Artist]":
    """Return what a legend of all panels shows, each label once."""
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values())
