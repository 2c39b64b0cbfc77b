"""belief.png: what the selector believes, round by round (FLASH: the posterior of its reward model's weights)."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.labels import spell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 1.96  # standard deviations: 95 % of a normal belief
COLUMNS = {1: 1, 2: 2, 4: 2}
MOST = 24  # panels; a selector that traces more is cut, and the title says so


def draw(info: RunInfo, history: History, path: Path) -> bool:
    """Draw it; False where the selector traces nothing."""
    names = list(dict.fromkeys(name for trace in history.trace for name in trace))
    if not names:
        return False
    names_in_figure = names[:MOST]
    columns = COLUMNS.get(len(names_in_figure), 3 if len(names_in_figure) <= 9 else 4)
    rows = -(-len(names_in_figure) // columns)
    cut = "" if len(names_in_figure) == len(names) else f" (first {MOST} of {len(names)})"
    what = f"Belief of the selector: mean and 95 % interval{cut}"
    figure = style.figure(info, what, 3.6 * columns + 0.6 if columns > 1 else 6, 2.3 * rows + 1.1)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axes, name in zip(grid.flat, names_in_figure, strict=False):
        _panel(axes, history, name)
    for axes in list(grid.flat)[len(names_in_figure) :]:
        axes.remove()
    for column in range(columns):
        lowest = max(row for row in range(rows) if row * columns + column < len(names_in_figure))
        grid[lowest, column].set_xlabel("communication round")
        grid[lowest, column].tick_params(labelbottom=True)
    style.save(figure, path)
    return True


def _panel(axes: "Axes", history: History, name: str) -> None:
    points = [(step, *trace[name]) for step, trace in zip(history.steps, history.trace, strict=True) if name in trace]
    steps, mean, sd = (np.asarray(values, dtype=float) for values in zip(*points, strict=True))
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    axes.fill_between(steps, mean - WIDTH * sd, mean + WIDTH * sd, color=style.BLUE, alpha=0.2, linewidth=0)
    dots = "o" if len(steps) <= 30 else ""
    axes.plot(steps, mean, color=style.BLUE, linewidth=1.7, marker=dots, markersize=3.5)
    axes.set_title(spell(name), fontsize=style.SMALL + 1, loc="left", color=style.BLACK)
    style.tidy(axes)
    style.whole_numbers(axes.xaxis, 6)
