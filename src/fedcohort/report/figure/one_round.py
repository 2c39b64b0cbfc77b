"""round.png: why a round's cohort was chosen: who was there, what each scored and of which parts, who came.

Only for selectors that score or draw with known probabilities: a uniform draw leaves nothing to explain.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.ranges import refuse
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.choice import ARRIVED, AWAY, IDLE, LATE, ExplainedRound, choose_rows, explain, load, sum_parts
from fedcohort.report.figure import style
from fedcohort.report.figure.labels import spell
from fedcohort.round.client_facts import SCORED
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.transforms import Affine2DBase

MANY = 100  # selected clients from which the rank panel's signs are small
PANELS = 5  # parts that are drawn beside a score that is not their sum
LOOKS = {  # fate -> (colour, marker, label)
    ARRIVED: (style.BLUE, "o", "selected, arrived"),
    LATE: (style.VERMILLION, "X", "selected, too late or lost"),
    IDLE: ("#ABABAB", ".", "available, not selected"),
    AWAY: ("#D9D9D9", "$\u25cb$", "unavailable"),
}
STACK = (style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.GREY, "#F0E442")


def draw(info: RunInfo, history: History, path: Path, step: int | None = None) -> bool:
    """Draw round `step`, None for the last that can be explained; False where there is none.

    Raises `OptionError` where `step` is no such round.
    """
    steps = explain(history)
    if step is not None and step not in steps:
        silent = f"left out, as selector={info.choices.get('selector')} gives neither scores nor probabilities"
        allowed = f"one of the rounds that chose by scores or probabilities, {list_steps(steps)}" if steps else silent
        raise refuse("round", allowed, step)
    if not steps:
        return False
    _draw(info, load(history, steps[-1] if step is None else step), path)
    return True


def _draw(info: RunInfo, round: ExplainedRound, path: Path) -> None:
    rows, panels = choose_rows(round), _panels(round)
    everybody = len(rows) == int((~np.isnan(round.key) | round.selected).sum())  # then the panel of ranks says no more
    height = float(np.clip(0.16 * len(rows), 1.7, 6.4 if everybody else 5.4))
    figure = style.figure(info, _title(round), 11, height + (1.7 if everybody else 3.5))
    widths = [3.0] + [1.4] * (len(panels) - 1)
    heights = [height] if everybody else [1.2, height]
    grid = figure.add_gridspec(len(heights), len(panels), width_ratios=widths, height_ratios=heights)
    if not everybody:
        _population(figure.add_subplot(grid[0, :]), round)
    first: Axes | None = None
    for i, (label, layers) in enumerate(panels):
        axes = figure.add_subplot(grid[-1, i], sharey=first)
        _bars(axes, round, rows, layers)
        axes.set_xlabel(label)
        axes.locator_params(axis="x", nbins=3 if first else 7)
        axes.tick_params(axis="y", labelleft=first is None)
        first = first or axes
    if first is not None:
        _names(first, round, rows, figure.dpi_scale_trans)
    handles = _handles(round)
    style.legend(figure, handles, len(handles) if len(handles) <= 6 else -(-len(handles) // 2))
    style.save(figure, path)


def _title(round: ExplainedRound) -> str:
    here, chosen = int((round.fate != AWAY).sum()), int(round.selected.sum())
    came, unscored = int((round.fate == ARRIVED).sum()), int((np.isnan(round.key) & (round.fate != AWAY)).sum())
    cut = np.isfinite(round.key).sum() >= SCORED  # then those who have no row may have had a score
    lacking = f"; {unscored:,} available without a score" if unscored and not cut else ""
    return f"Round {round.step}: {chosen:,} of {here:,} available clients selected, {came:,} arrived{lacking}"


def _panels(round: ExplainedRound) -> list[tuple[str, Sequence[tuple[Values, str | None]]]]:
    """Return (label, layers of bars) of each panel; a layer without a colour has that of the client's fate."""
    if round.stacked:
        layers = [(values, colour) for values, colour in zip(round.parts.values(), _colours(round), strict=True)]
        found: list[tuple[str, Sequence[tuple[Values, str | None]]]] = [("score, the sum of its parts", layers)]
    else:
        found = [] if np.isnan(round.score).all() else [("score", [(round.score, None)])]
        names = list(round.parts)
        left = f"\n({len(names) - PANELS} more are not shown)" if len(names) > PANELS else ""
        for i, name in enumerate(names[:PANELS], start=1):
            label = spell(name) + (left if i == PANELS else "")
            found.append((label, [(round.parts[name], None)]))
    if round.probability is not None:
        found.append(("probability", [(round.probability, None)]))
    return found


def _colours(round: ExplainedRound) -> list[str]:
    return [STACK[i % len(STACK)] for i in range(len(round.parts))]


def _bars(axes: "Axes", round: ExplainedRound, rows: Ids, layers: Sequence[tuple[Values, str | None]]) -> None:
    """Bars to the right for what adds to the sum, to the left for what takes from it; a word for what is no number."""
    y = np.arange(len(rows))
    fates = [LOOKS[int(fate)][0] for fate in round.fate[rows]]
    ends = {1: np.zeros(len(rows)), -1: np.zeros(len(rows))}
    for values, colour in layers:
        width = np.where(np.isfinite(values[rows]), values[rows], 0.0)
        for side, end in ends.items():
            part = np.where(np.sign(width) == side, width, 0.0)
            axes.barh(y, part, left=end, height=0.78, color=colour or fates, linewidth=0)
            end += part
    total = sum_parts([values[rows] for values, _ in layers])
    if len(layers) > 1:
        axes.plot(total, y, "|", color=style.BLACK, markersize=6, markeredgewidth=1.4)
    for i in np.flatnonzero(~np.isfinite(total)):
        word = "none" if np.isnan(total[i]) else ("\u221e" if total[i] > 0 else "\u2212\u221e")
        axes.text(0.01, float(i), word, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color="#555555")
    axes.axvline(0, color=style.GREY, linewidth=0.6)
    low, high = float(ends[-1].min(initial=0.0)), float(ends[1].max(initial=0.0))
    room = 0.04 * (high - low) or 1.0
    axes.set_xlim(low - (room if low else 0.0), high + room)
    style.tidy(axes)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def _names(axes: "Axes", round: ExplainedRound, rows: Ids, inches: "Affine2DBase") -> None:
    """The clients' ids, each with the sign of its fate."""
    from matplotlib.transforms import ScaledTranslation

    size = float(np.clip(72 * 5.6 / max(len(rows), 1) * 0.85, 5.0, style.SMALL - 1))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(np.arange(len(rows)), [str(k) for k in rows], fontsize=size)
    axes.tick_params(axis="y", labelsize=size, pad=15)
    beside = axes.get_yaxis_transform() + ScaledTranslation(-8 / 72, 0, inches)
    for i, k in enumerate(rows):
        colour, marker, _ = LOOKS[int(round.fate[k])]
        axes.plot([0], [i], marker=marker, color=colour, markersize=5, clip_on=False, transform=beside)
    left = int(round.selected.sum() - round.selected[rows].sum())
    cut = f"; {left:,} more were selected" if left else ""
    axes.set_ylabel(f"client, best first ({len(rows)} of {len(round.key):,}{cut})")


def _population(axes: "Axes", round: ExplainedRound) -> None:
    """Draw everybody's score by rank, and where those who were selected stand."""
    ranking = round.ranking
    value, fate = round.key[ranking], round.fate[ranking]
    rank = np.arange(1, len(ranking) + 1)
    finite = np.isfinite(value)
    size = 5.0 if round.selected.sum() <= MANY else 2.5
    for code in (AWAY, IDLE, ARRIVED, LATE):
        colour, marker, _ = LOOKS[code]
        look: dict[str, Any] = {
            "color": colour,
            "markersize": 3.0 if code in (AWAY, IDLE) else size,
            "linestyle": "none",
        }
        at = finite & (fate == code)
        axes.plot(rank[at], value[at], marker="." if code in (AWAY, IDLE) else marker, **look)
        for end, edge, sign in ((np.inf, 1.0, "^"), (-np.inf, 0.0, "v")):
            beyond = rank[(value == end) & (fate == code)]
            if len(beyond):  # an empty line without clipping would have no place in the layout
                height = np.full(len(beyond), edge)
                axes.plot(beyond, height, marker=sign, transform=axes.get_xaxis_transform(), clip_on=False, **look)
    axes.set_xlim(0, len(ranking) + 1)
    axes.set_xlabel("rank of all clients")
    axes.set_ylabel("score" if round.key is round.score else "probability")
    style.tidy(axes)
    style.whole_numbers(axes.xaxis)


def _handles(round: ExplainedRound) -> "list[Artist]":
    """Return the legend's handles for what is there, parts first."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    parts = zip(round.parts, _colours(round), strict=True) if round.stacked else ()
    found: list[Artist] = [Patch(color=colour, label=spell(name)) for name, colour in parts]
    for code, (colour, marker, label) in LOOKS.items():
        if (round.fate == code).any():
            found.append(Line2D([], [], color=colour, marker=marker, linestyle="none", label=label))
    return found


def list_steps(steps: Sequence[int]) -> str:
    """`1 to 50`, `2 to 50`, or `2, 5, ..., 50` where some between them do not count."""
    if steps[-1] - steps[0] + 1 == len(steps):
        return str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    return ", ".join(map(str, steps)) if len(steps) <= 6 else f"{steps[0]}, {steps[1]}, ..., {steps[-1]}"
