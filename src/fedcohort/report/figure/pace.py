"""pace.png: how long rounds took, which deadlines were announced, who arrived by then, and what steers both."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.round_times import arrivals, lengths, timed_steps

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

COUNTS = (  # column -> (colour, label), from below
    ("whole", style.BLUE, "arrived"),
    ("part", style.ORANGE, "arrived with a part of the work"),
    ("late", style.VERMILLION, "too late or lost"),
)
STEERED = (  # panels: label of the axis, and metric -> (colour, label) of each line in it
    ("loss, nats", {"samples/threshold": (style.PURPLE, "loss threshold")}),
    (
        "ratio",
        {"samples/ltr": (style.BLUE, "of the loss threshold"), "deadline/ddlr": (style.VERMILLION, "of the deadline")},
    ),
)
FEW = 1  # other cohorts than the usual one, as a first round with everybody, that need no panel
SOME = 0.01  # of a round, from which what was before its broadcast is drawn


def draw(info: RunInfo, history: History, path: Path) -> bool:
    """Draw it; False where no time passed in any round."""
    if not timed_steps(history):
        return False
    steered = [
        (axis, found) for axis, lines in STEERED if (found := {n: k for n, k in lines.items() if n in history.metrics})
    ]
    counts = arrivals(history)
    uneven = counts[["part", "late"]].to_numpy().any() or counts["whole"].nunique() > 1 + FEW
    title = "Pace: how long rounds took, and who arrived by then" if uneven else "Pace: how long rounds took"
    panels = 1 + int(uneven) + len(steered)
    figure = style.figure(info, title, 10, 2.6 + 1.3 * panels)
    heights = [2, *(1 for _ in range(panels - 1))]
    grid = figure.subplots(panels, 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    _lengths(grid[0], history)
    if uneven:
        _arrivals(grid[1], counts)
    for axes, (axis, lines) in zip(grid[1 + int(uneven) :], steered, strict=True):
        _steered(axes, history, axis, lines)
    style.whole_numbers(grid[-1].xaxis)
    grid[-1].set_xlabel("communication round")
    grid[-1].set_xlim(0.5, max(history.steps) + 0.5)
    if len(handles := _handles(grid)) > 1:  # the axis says what a line by itself is
        style.legend(figure, handles, 3)
    style.save(figure, path)
    return True


def _lengths(axes: "Axes", history: History) -> None:
    closed = history.metrics["round/closed_s"].dropna()
    whole = lengths(history).reindex(closed.index)
    told = history.metrics.get("round/announced_s")
    told = told.dropna() if told is not None else closed.iloc[:0]
    size, unit = style.virtual_unit([*whole.dropna().tolist(), *closed.tolist(), *told.tolist()])
    line = "o-" if len(closed) <= style.COUNTABLE else "-"
    if (whole > (1 + SOME) * closed).any():
        label = "with questions and waits"
        axes.plot(whole.index, whole / size, color=style.GREY, linewidth=1.0, label=label)
    axes.plot(closed.index, closed / size, line, color=style.BLUE, markersize=3, label="round closed")
    if len(told):
        axes.plot(told.index, told / size, "--", color=style.VERMILLION, linewidth=1.3, label="announced deadline")
    axes.set_ylim(0, 1.08 * max(axes.dataLim.y1, 1e-12))
    axes.set_ylabel(f"virtual time of a round, {unit}")
    style.tidy(axes)


def _arrivals(axes: "Axes", counts: "pd.DataFrame") -> None:
    edges = np.append(counts.index.to_numpy() - 0.5, counts.index[-1] + 0.5)
    below = np.zeros(len(counts))
    for name, colour, label in COUNTS:
        above = below + counts[name].to_numpy()
        if (above > below).any():
            axes.stairs(above, edges, baseline=below, fill=True, color=colour, label=label)
        below = above
    axes.set_ylabel("clients")
    axes.set_ylim(bottom=0)
    style.tidy(axes)
    style.whole_numbers(axes.yaxis, 4)


def _steered(axes: "Axes", history: History, axis: str, lines: Mapping[str, tuple[str, str]]) -> None:
    for name, (colour, label) in lines.items():
        values = history.metrics[name].dropna()
        axes.step(values.index, values, where="mid", color=colour, linewidth=1.3, label=label)
    axes.set_ylabel(axis)
    axes.set_ylim(bottom=0)
    style.tidy(axes)


def _handles(panels: np.ndarray) -> "list[Artist]":
    return [handle for axes in panels for handle in axes.get_legend_handles_labels()[0]]
