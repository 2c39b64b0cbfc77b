"""The curves of a comparison: the metric over rounds and over costs, and its paired difference to the baseline.

More rows than colours can be told apart are drawn otherwise: of the metric, the best of them and the baseline stand
before the others in grey; of differences, each has a panel of its own, the best first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.observe.comparison import verdict
from fedcohort.observe.comparison.band import ROUNDS, Band, average, subtract
from fedcohort.observe.comparison.cells import ONE, Cell, spell
from fedcohort.observe.comparison.draw import COLOURS, SIDES, figure, list_handles, name_axis
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.series import FLOPS, Curve, Series
from fedcohort.observe.comparison.shown import unit, unit_of
from fedcohort.observe.comparison.table import Table, base_of
from fedcohort.observe.reached import DOWN
from fedcohort.report.figure import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Histories = Mapping[Cell, Mapping[int, Series]]
DASHES = ("-", "--", ":", "-.")
MOST = 8  # rows that are told apart by their colours
MOST_POINTS = 100.0  # of a difference of two percentages
WIDTH = 15.5
ACROSS = 5  # panels of differences beside each other


@dataclass(frozen=True)
class Axis:
    """What a panel has across: its readings times `factor`, and how it is called."""

    name: str
    factor: float
    label: str


def draw_curves(histories: Histories, found: Sorted, table: Table, path: Path, goal: float | None = None) -> None:
    """Draw a row of panels for each column of the table, with one standard deviation over seeds.

    goal: a target, where it is one number.
    """
    u = unit(table)
    every = [series for of in histories.values() for series in of.values() if len(series.rounds)]
    looks, grey = _choose_looks(table)
    height = 0.9 + 2.9 * len(found.cols) + 0.25 * (len(looks) / 5 + 1)
    canvas = figure(f"{table.metric}: mean and one standard deviation over seeds", found, WIDTH, height)
    axes_of = _axes_of(every)
    grid = canvas.subplots(len(found.cols), len(axes_of), sharey="row", squeeze=False)
    for i, col in enumerate(found.cols):
        for row in [*grey, *looks]:  # the grey ones lie below
            series = [each for each in histories.get((row, col), {}).values() if len(each.rounds)]
            for axes, axis in zip(grid[i], axes_of, strict=True):
                band = average(series, axis.name) if series else None
                if band is not None and row in looks:
                    _line(axes, band, band.std, axis, u.factor, looks[row])
                elif band is not None:
                    label = f"{len(grey)} others"
                    axes.plot(band.x * axis.factor, band.mean * u.factor, color="#D5D5D5", linewidth=0.8, label=label)
        grid[i, 0].set_ylabel(name_axis(f"{col}: {table.metric}" if col else table.metric, u))
        for axes in grid[i]:
            if goal is not None:
                axes.axhline(goal * u.factor, color=style.GREY, linewidth=1.0, linestyle="--", label="target")
    _finish(grid.tolist(), axes_of)
    style.legend(canvas, list_handles(grid.flat), 8)
    style.save(canvas, path)


def draw_differences(histories: Histories, found: Sorted, table: Table, path: Path) -> bool:
    """Draw each curve minus the baseline's, with the 95 % interval of the mean and a line at zero.

    Returns whether there is anything to draw.
    """
    bases: dict[Cell, list[Cell]] = {}
    for gap in verdict.list_gaps(table):
        if all(len(series.rounds) for cell in (gap.cell, gap.base) for series in histories.get(cell, {}).values()):
            bases.setdefault(gap.base, []).append(gap.cell)
    if not bases:
        return False
    if max(map(len, bases.values())) > MOST:
        _draw_panels(histories, found, table, path, [cell for cells in bases.values() for cell in cells])
    else:
        _draw_together(histories, found, table, path, bases)
    return True


def _draw_together(
    histories: Histories, found: Sorted, table: Table, path: Path, bases: Mapping[Cell, Sequence[Cell]]
) -> None:
    """A row of panels for each cell that others are compared with."""
    factor, place = unit(table).factor, 0 if table.baseline in table.rows else 1
    names = found.rows if place == 0 else found.cols
    looks = {name: _look(i, name) for i, name in enumerate(names)}
    axes_of = _axes_of([series for of in histories.values() for series in of.values() if len(series.rounds)])
    height = 0.9 + 2.9 * len(bases) + 0.25 * (len(names) / 5 + 1)
    canvas = figure(_title(table), found, WIDTH, height)
    grid = canvas.subplots(len(bases), len(axes_of), sharey="row", squeeze=False)
    for i, (base, cells) in enumerate(bases.items()):
        for cell in sorted(cells, key=lambda cell: list(names).index(cell[place])):
            for axes, axis in zip(grid[i], axes_of, strict=True):
                band = subtract(histories[cell], histories[base], axis.name)
                _line(axes, band, band.half, axis, factor, looks[cell[place]])
        other = base[1 - place]
        grid[i, 0].set_ylabel(f"{f'{other}: ' if other != ONE else ''}difference, {verdict.points(table)}".rstrip(", "))
        for axes in grid[i]:
            axes.axhline(0.0, color=style.BLACK, linewidth=1.0)
        grid[i, 0].set_ylim(_possible(grid[i, 0].get_ylim(), table))
    _finish(grid.tolist(), axes_of)
    style.legend(canvas, list_handles(grid.flat), 8)
    style.save(canvas, path)


def _draw_panels(histories: Histories, found: Sorted, table: Table, path: Path, cells: Sequence[Cell]) -> None:
    """A panel a cell, by rounds: the best first, in the colour of its verdict."""
    factor, gaps = unit(table).factor, {gap.cell: gap for gap in verdict.list_gaps(table)}
    down = -(-len(cells) // ACROSS)
    height = 1.4 + 1.75 * down
    canvas = figure(_title(table), found, WIDTH, height, constrained=False)
    grid = canvas.subplots(down, ACROSS, squeeze=False)
    canvas.subplots_adjust(
        left=0.75 / WIDTH, right=1 - 0.1 / WIDTH, top=1 - 0.9 / height, bottom=0.8 / height, wspace=0.05, hspace=0.25
    )
    pairs = [(cell, base_of(cell, table.baseline, found)) for cell in cells]
    bands = [subtract(histories[cell], histories[base], ROUNDS) for cell, base in pairs if base is not None]
    ends = [(band.mean - sign * np.nan_to_num(band.half)) * factor for band in bands for sign in (1, -1)]
    low, high = _possible(_span(ends), table)
    last = max((float(band.x[-1]) for band in bands if len(band.x)), default=1.0)
    for n, (axes, cell, band) in enumerate(zip(grid.flat, cells, bands, strict=False)):
        label = f"{gaps[cell].word} {table.baseline}"
        look = {"color": SIDES[gaps[cell].side][0], "linewidth": 1.5, "label": label}
        axes.set(xlim=(-0.02 * last, 1.02 * last), ylim=(low, high))  # sharing axes takes seconds for dozens of them
        _line(axes, band, band.half, Axis(ROUNDS, 1.0, ""), factor, look)
        axes.axhline(0.0, color=style.BLACK, linewidth=0.8)
        axes.set_title(spell(cell), fontsize=style.SMALL, loc="left", pad=3, y=1.0)
        axes.tick_params(labelleft=n % ACROSS == 0, labelbottom=n + ACROSS >= len(cells))
        style.tidy(axes)
    for axes in list(grid.flat)[len(cells) :]:
        axes.set_visible(False)
    canvas.supxlabel("communication round", fontsize=style.SMALL + 1, y=0.3 / height)
    canvas.supylabel(f"difference, {verdict.points(table)}".rstrip(", "), fontsize=style.SMALL + 1, x=0.15 / WIDTH)
    canvas.legend(handles=list_handles(grid.flat), loc="lower left", ncols=3, fontsize=style.SMALL, frameon=False)
    style.save(canvas, path)


def _span(every: Sequence[Curve]) -> tuple[float, float]:
    """Limits that hold all finite values and zero, with a little room."""
    values = np.concatenate([np.zeros(1), *(each[np.isfinite(each)] for each in every)])
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _possible(limits: tuple[float, float], table: Table) -> tuple[float, float]:
    """The part of an axis of differences that can be: an interval of two seeds goes far beyond what shares do."""
    most = MOST_POINTS if unit(table).name == "%" else math.inf
    return max(limits[0], -most), min(limits[1], most)


def _title(table: Table) -> str:
    return f"{table.metric}: paired difference to {table.baseline}, mean and 95 % interval over seeds"


def _choose_looks(table: Table) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """How each row is drawn that has a colour, in the table's order, and the rows that are left grey."""
    rows = list(table.rows)
    if len(rows) > MOST:
        means = {row: _mean_of(table, row) for row in rows}
        best = sorted(rows, key=lambda row: (row != table.baseline, -table.sign * means[row]))
        rows = [row for row in rows if row in best[: len(COLOURS)]]
    return {row: _look(i, row) for i, row in enumerate(rows)}, [row for row in table.rows if row not in rows]


def _mean_of(table: Table, row: str) -> float:
    """The mean over the columns, the worst there is where it isn't a number."""
    values = [entry.value.mean for cell, entry in table.entries.items() if cell[0] == row]
    value = float(np.mean(values)) if values else np.nan
    return value if np.isfinite(value) else -table.sign * np.inf


def _axes_of(every: Sequence[Series]) -> list[Axis]:
    """Rounds, then what was spent by then, each in the unit in which all of it reads best."""
    size, clock = style.virtual_unit([float(series.virtual_s[-1]) for series in every])
    load, work = (unit_of(name, _largest(every, axis)) for name, axis in ((DOWN, "bytes"), (FLOPS, "client_flops")))
    return [
        Axis(ROUNDS, 1.0, "communication round"),
        Axis("virtual_s", 1 / size, f"virtual time, {clock}"),
        Axis("bytes", load.factor, f"bytes up and down, {load.name}"),
        Axis("client_flops", work.factor, f"client computation, {work.name}"),
    ]


def _largest(every: Sequence[Series], axis: str) -> float:
    last = [float(series.along(axis)[-1]) for series in every]
    return max((value for value in last if np.isfinite(value)), default=0.0)


def _look(position: int, row: str) -> dict[str, Any]:
    dash = DASHES[position // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[position % len(COLOURS)], "linestyle": dash, "linewidth": 1.7, "label": row}


def _line(axes: "Axes", band: Band, half: Curve, axis: Axis, factor: float, look: Mapping[str, Any]) -> None:
    if not len(band.x):
        return
    x, mean, half = band.x * axis.factor, band.mean * factor, half * factor
    axes.plot(x, mean, **look)
    if np.isfinite(half).any():
        axes.fill_between(x, mean - half, mean + half, color=look["color"], alpha=0.16, linewidth=0)


def _finish(grid: "Sequence[Sequence[Axes]]", axes_of: Sequence[Axis]) -> None:
    for line in grid:
        for axes in line:
            style.tidy(axes)
        style.whole_numbers(line[0].xaxis)
    for axes, axis in zip(grid[-1], axes_of, strict=True):
        axes.set_xlabel(axis.label)
