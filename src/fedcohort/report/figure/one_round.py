"""round.png: how a round's cohort was selected: availability, scores with their components, and arrivals.

Only for selectors that score, or draw with unequal probabilities.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.ranges import range_error
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.selector_state import label_of
from fedcohort.report.scored_round import (
    ARRIVED,
    AWAY,
    IDLE,
    TOO_LATE,
    ScoredRound,
    choose_rows,
    list_scored_rounds,
    load_scored_round,
)
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 5  # components that are drawn next to a score
LOOKS = {  # outcome -> (colour, marker, label)
    ARRIVED: (style.BLUE, "o", "selected, arrived"),
    TOO_LATE: (style.VERMILLION, "X", "selected, too late or lost"),
    IDLE: ("#ABABAB", ".", "available, not selected"),
    AWAY: ("#D9D9D9", "$\u25cb$", "unavailable"),
}


def draw(info: RunInfo, history: History, step: int | None = None) -> "Figure | None":
    """Return the figure of round `step`, None for the last round with scores; None if there is no such round.

    Raises `OptionError` if round `step` has no scores.
    """
    steps = list_scored_rounds(history)
    if step is not None and step not in steps:
        allowed = f"left out, as selector={info.choices.get('selector')} gives neither scores nor probabilities"
        if steps:
            allowed = f"one of the rounds that selected by scores or probabilities, {list_steps(steps)}"
        raise range_error("round", allowed, step)
    if not steps:
        return None
    round = load_scored_round(history, steps[-1] if step is None else step)
    rows, panels = choose_rows(round), _list_panels(round)
    height = float(np.clip(0.11 * len(rows), 1.4, 5.8))
    width = style.COLUMN if len(panels) == 1 else style.PAGE
    figure = style.new_run_figure(info, _title(round), width, height + 1.2)
    widths = [3.0] + [1.4] * (len(panels) - 1)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=widths)[0]
    for i, (axes, (label, values)) in enumerate(zip(grid, panels, strict=True)):
        _draw_bars(axes, round, rows, values[rows])
        axes.set_xlabel(style.wrap(label, width / len(panels) - 0.2))
        axes.locator_params(axis="x", nbins=3 if i else 5)
    _name_rows(grid[0], info, round, rows)
    style.legend(figure, _list_handles(round))
    return figure


def _title(round: ScoredRound) -> str:
    available, selected = int((round.outcome != AWAY).sum()), int(round.selected.sum())
    arrived = int((round.outcome == ARRIVED).sum())
    return f"Round {round.step}: {selected:,} of {available:,} available clients selected, {arrived:,} arrived"


def _list_panels(round: ScoredRound) -> list[tuple[str, Values]]:
    """Return the label of each panel, and its values by client."""
    panels = [] if np.isnan(round.score).all() else [("score", round.score)]
    panels += [(label_of(name), values) for name, values in list(round.parts.items())[:PANELS]]
    if (hidden := len(round.parts) - PANELS) > 0:
        label, values = panels[-1]
        panels[-1] = (f"{label}\n({hidden} more are not shown)", values)
    if round.probability is not None:
        panels.append(("probability", round.probability))
    return panels


def _draw_bars(axes: "Axes", round: ScoredRound, rows: Ids, values: Values) -> None:
    """Draw the values of the rows in the colours of the outcomes, and a text for values that are not finite."""
    colours = [LOOKS[int(outcome)][0] for outcome in round.outcome[rows]]
    axes.barh(np.arange(len(rows)), np.where(np.isfinite(values), values, 0.0), height=0.78, color=colours, linewidth=0)
    look: dict[str, Any] = {"va": "center", "fontsize": style.row_size(axes, len(rows)), "color": "#555555"}
    for i in np.flatnonzero(~np.isfinite(values)):
        text = "none" if np.isnan(values[i]) else ("\u221e" if values[i] > 0 else "\u2212\u221e")
        axes.text(0.01, float(i), text, transform=axes.get_yaxis_transform(), **look)
    axes.axvline(0, color=style.GREY, linewidth=0.6)
    axes.use_sticky_edges = False  # bars end inside the frame
    style.format_axes(axes, "x")
    axes.tick_params(axis="y", length=0)


def _name_rows(axes: "Axes", info: RunInfo, round: ScoredRound, rows: Ids) -> None:
    """Put the clients' ids, label noise and most frequent class at the rows, each with the sign of its outcome."""
    noise, majority = 100 * np.nan_to_num(info.noise_rate), info.class_counts.argmax(axis=1)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(np.arange(len(rows)), [f"{k}, {noise[k]:.0f} %, {majority[k]}" for k in rows])
    axes.tick_params(axis="y", labelsize=style.row_size(axes, len(rows)), pad=11)
    for code in np.unique(round.outcome[rows]):  # an empty line without clipping would break the layout
        y = np.flatnonzero(round.outcome[rows] == code)
        colour, marker, _ = LOOKS[int(code)]
        look: dict[str, Any] = {"color": colour, "markersize": 3.5, "linestyle": "none", "clip_on": False}
        axes.plot(np.full(len(y), -0.035), y, marker=marker, transform=axes.get_yaxis_transform(), **look)
    hidden = int(round.selected.sum() - round.selected[rows].sum())
    cut = f"; {hidden:,} more were selected" if hidden else ""
    axes.set_ylabel(f"client, label noise, most frequent class\n(best first, {len(rows)} of {len(round.key):,}{cut})")


def _list_handles(round: ScoredRound) -> "list[Artist]":
    """Return the legend's entries: the outcomes that occur."""
    from matplotlib.lines import Line2D

    looks = [look for code, look in LOOKS.items() if (round.outcome == code).any()]
    return [Line2D([], [], color=colour, marker=m, linestyle="none", label=label) for colour, m, label in looks]


def list_steps(steps: Sequence[int]) -> str:
    """Return the rounds as text: `1 to 50`, or `2, 5, ..., 50` if some between them are missing."""
    if steps[-1] - steps[0] + 1 == len(steps):
        return str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    return ", ".join(map(str, steps)) if len(steps) <= 6 else f"{steps[0]}, {steps[1]}, ..., {steps[-1]}"
