"""pace.png: length of each round, announced deadlines, and numbers of clients that arrived in time."""

from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.timeline import count_arrivals, list_timed_rounds, round_lengths

if TYPE_CHECKING:
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
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    closed = history.metrics["round/closed_s"].dropna()
    total = round_lengths(history).reindex(closed.index)
    deadlines = history.metrics.get("round/announced_s", closed.iloc[:0]).dropna()
    size, unit = style.virtual_unit([*total.dropna().tolist(), *closed.tolist(), *deadlines.tolist()])
    if (total > (1 + VISIBLE) * closed).any():
        style.line(upper, total.index, total / size, 1.0, color=style.GREY, label="with queries and waits", marker="")
    style.line(upper, closed.index, closed / size, color=style.BLUE, label="round closed")
    if len(deadlines):
        dashes: dict[str, Any] = {"color": style.VERMILLION, "linestyle": "--", "label": "announced deadline"}
        style.line(upper, deadlines.index, deadlines / size, marker="", **dashes)
    upper.set_ylim(0, 1.08 * max(upper.dataLim.y1, 1e-12))
    upper.set_ylabel(f"virtual time\nof a round, {unit}")
    style.format_axes(upper)
    counts = count_arrivals(history)
    edges = np.append(counts.index.to_numpy() - 0.5, counts.index[-1] + 0.5)
    below = np.zeros(len(counts))
    for name, colour, hatch, label in COUNTS:
        above = below + counts[name].to_numpy()
        if (above > below).any():
            bars: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            lower.stairs(above, edges, baseline=below, fill=True, label=label, **bars)
        below = above
    lower.set_ylabel("clients")
    lower.set_ylim(bottom=0)
    style.format_axes(lower)
    style.use_integer_ticks(lower.yaxis, 4)
    style.label_rounds_axis(lower)
    lower.set_xlim(0.5, max(history.steps) + 0.5)
    style.legend(figure)
    return figure
