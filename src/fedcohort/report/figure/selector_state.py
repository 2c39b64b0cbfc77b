"""belief.png: the selector's state by round, such as the posterior of FLASH's reward model."""

from typing import TYPE_CHECKING

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.labels import spell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 1.96  # standard deviations: 95 % of a normal distribution
COLUMNS = {1: 1, 2: 2, 4: 2}  # by number of panels
MAX_PANELS = 24


def draw(info: RunInfo, history: History) -> "Figure | None":
    """Return the figure; None if the selector traces no quantity."""
    names = list(dict.fromkeys(name for trace in history.trace for name in trace))
    if not names:
        return None
    panel_names = names[:MAX_PANELS]
    columns = COLUMNS.get(len(panel_names), 3 if len(panel_names) <= 9 else 4)
    rows = -(-len(panel_names) // columns)
    cut = "" if len(panel_names) == len(names) else f" (first {MAX_PANELS} of {len(names)})"
    title = f"State of the selector: mean and 95 % interval{cut}"
    figure = style.figure(info, title, 3.6 * columns + 0.6 if columns > 1 else 6, 2.3 * rows + 1.1)
    grid = list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)
    for axes in grid[len(panel_names) :]:
        axes.remove()
    for i, (axes, name) in enumerate(zip(grid, panel_names, strict=False)):
        _panel(axes, history, name)
        if i + columns >= len(panel_names):  # the lowest panel of its column
            axes.set_xlabel("communication round")
            axes.tick_params(labelbottom=True)
    return figure


def _panel(axes: "Axes", history: History, name: str) -> None:
    points = [(step, *trace[name]) for step, trace in zip(history.steps, history.trace, strict=True) if name in trace]
    steps, mean, sd = (np.asarray(values, dtype=float) for values in zip(*points, strict=True))
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    axes.fill_between(steps, mean - WIDTH * sd, mean + WIDTH * sd, color=style.BLUE, alpha=0.2, linewidth=0)
    style.line(axes, steps, mean, 1.7, color=style.BLUE)
    axes.set_title(spell(name), fontsize=style.SMALL + 1, loc="left", color=style.BLACK)
    style.tidy(axes)
    style.whole_numbers(axes.xaxis, 6)
