"""pace.png: length of each round, announced deadlines, and numbers of clients that arrived in time."""

from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.timeline import count_arrivals, list_timed_rounds, round_lengths

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNTS = (  # column of `arrivals`, colour, hatch and label, from below
    ("complete", style.BLUE, "", "arrived"),
    ("partial", style.ORANGE, style.HATCH, "arrived with part of the work"),
    ("late", style.VERMILLION, "xxx", "too late or lost"),
)
VISIBLE = 0.01  # share of a round from which time before its broadcast is drawn


def draw(info: RunInfo, history: History) -> "Figure | None":
    """Return the figure; None if no time passed in any round."""
    if not list_timed_rounds(history):
        return None
    figure = style.new_run_figure(info, "Length of each round, and clients that arrived by its end", style.COLUMN, 3.3)
    grid = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    _draw_lengths(grid[0], history)
    _draw_arrivals(grid[1], count_arrivals(history))
    style.label_rounds_axis(grid[1])
    grid[1].set_xlim(0.5, max(history.steps) + 0.5)
    style.legend(figure)
    return figure


def _draw_lengths(axes: "Axes", history: History) -> None:
    closed = history.metrics["round/closed_s"].dropna()
    total = round_lengths(history).reindex(closed.index)
    deadlines = history.metrics.get("round/announced_s", closed.iloc[:0]).dropna()
    size, unit = style.virtual_unit([*total.dropna().tolist(), *closed.tolist(), *deadlines.tolist()])
    if (total > (1 + VISIBLE) * closed).any():
        style.line(axes, total.index, total / size, 1.0, color=style.GREY, label="with queries and waits", marker="")
    style.line(axes, closed.index, closed / size, color=style.BLUE, label="round closed")
    if len(deadlines):
        look: dict[str, Any] = {"color": style.VERMILLION, "linestyle": "--", "label": "announced deadline"}
        style.line(axes, deadlines.index, deadlines / size, marker="", **look)
    axes.set_ylim(0, 1.08 * max(axes.dataLim.y1, 1e-12))
    axes.set_ylabel(f"virtual time\nof a round, {unit}")
    style.format_axes(axes)


def _draw_arrivals(axes: "Axes", counts: "pd.DataFrame") -> None:
    edges = np.append(counts.index.to_numpy() - 0.5, counts.index[-1] + 0.5)
    below = np.zeros(len(counts))
    for name, colour, hatch, label in COUNTS:
        above = below + counts[name].to_numpy()
        if (above > below).any():
            look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            axes.stairs(above, edges, baseline=below, fill=True, label=label, **look)
        below = above
    axes.set_ylabel("clients")
    axes.set_ylim(bottom=0)
    style.format_axes(axes)
    style.use_integer_ticks(axes.yaxis, 4)
