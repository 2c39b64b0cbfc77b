"""The two pictures of a study: the map of regimes and selectors, and the methods' mean ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort.report.figure import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

ENOUGH = 0.55  # of the colour scale: beyond it numbers are white
CLOSE = 25  # ranks on a line, from which their numbers would run into each other


@dataclass(frozen=True)
class RegimeMap:
    """Differences to the baseline, cells down, selectors across.

    Attributes:
        cells, rows: their labels.
        difference: in the shown unit, NaN where there is no result.
        clear: whether it can be told from 0.
        cuts: columns before which a wider line stands: between methods and yardsticks.
        unit: as "points".
        baseline: with what they are compared.
        note: the second line of the title.
    """

    cells: Sequence[str]
    rows: Sequence[str]
    difference: Float64[np.ndarray, "cells rows"]
    clear: Bool[np.ndarray, "cells rows"]
    cuts: Sequence[int]
    unit: str
    baseline: str
    note: str


def draw_map(shown: RegimeMap, path: Path) -> None:
    """Draw a square a cell and selector: its colour is the difference, hatched where that can't be told from 0."""
    from matplotlib.colors import SymLogNorm
    from matplotlib.patches import Patch, Rectangle

    n_cells, n_rows = shown.difference.shape
    width, height = 3.6 + 0.62 * n_rows, 2.7 + 0.42 * n_cells
    canvas = style.titled(f"Difference to {shown.baseline}, {shown.unit}", shown.note, width, height)
    axes = canvas.subplots()
    largest = max(float(np.nanmax(np.abs(shown.difference), initial=0.0)), 1.0)
    norm = SymLogNorm(linthresh=1.0, vmin=-largest, vmax=largest)
    axes.imshow(np.ma.masked_invalid(shown.difference), cmap=_diverging(), norm=norm, aspect="auto")
    for i, j in np.ndindex(n_cells, n_rows):
        value = shown.difference[i, j]
        if not np.isfinite(value):
            axes.text(j, i, "–", ha="center", va="center", fontsize=style.SMALL, color=style.GREY)
            continue
        if not shown.clear[i, j]:
            hatch: dict[str, Any] = {"fill": False, "hatch": "////", "edgecolor": "#B8B8B8", "linewidth": 0}
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **hatch))
        dark = shown.clear[i, j] and abs(float(norm(value)) - 0.5) > ENOUGH / 2
        text = f"{value:+.1f}" if abs(value) < 10 else f"{value:+.0f}"
        look = {} if shown.clear[i, j] else {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}
        weight = "bold" if shown.clear[i, j] else "normal"
        colour = "white" if dark else style.BLACK
        axes.text(j, i, text, ha="center", va="center", fontsize=8.5, color=colour, fontweight=weight, **look)
    axes.set_xticks(range(n_rows), shown.rows, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(n_cells), shown.cells)
    style.tidy(axes, grid=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    style.separate(axes, n_cells, n_rows)
    for cut in shown.cuts:
        axes.axvline(cut - 0.5, color="white", linewidth=6)
        axes.axvline(cut - 0.5, color=style.BLACK, linewidth=1)
    hatched = Patch(facecolor="white", hatch="////", edgecolor="#B8B8B8", label=f"not told from {shown.baseline}")
    style.legend(canvas, 1, [hatched])
    style.save(canvas, path)


def draw_ranks(ranks: Mapping[str, float], baseline: str, note: str, path: Path) -> None:
    """Draw mean ranks on a line, best at the left."""
    names = sorted(ranks, key=lambda name: ranks[name])
    half = (len(names) + 1) // 2
    height = 1.8 + 0.26 * half
    canvas = style.titled("Mean rank over regimes, 1 is best", note, 8.0, height)
    axes = canvas.subplots()
    low, high = 1, len(names)
    axes.set_xlim(low - 0.30 * (high - low), high + 0.30 * (high - low))
    first = 0.5
    axes.set_ylim(first + 0.5 * half + 0.2, -0.8)
    axes.hlines(0, low, high, color=style.BLACK, linewidth=1.0)
    step = 1 if high <= CLOSE else 5
    for tick in range(low, high + 1):
        axes.vlines(tick, -0.12, 0, color=style.BLACK, linewidth=1.0)
        if tick == low or tick % step == 0:
            axes.text(tick, -0.2, str(tick), ha="center", va="bottom", fontsize=style.SMALL)
    for place, name in enumerate(names):
        _label(axes, name, ranks[name], (place, half, len(names)), first, name == baseline)
    axes.set_axis_off()
    style.save(canvas, path)


def _label(axes: "Axes", name: str, rank: float, place: tuple[int, int, int], first: float, base: bool) -> None:
    """Write the better half at the left, the others at the right, with lines that don't cross."""
    position, half, count = place
    left = position < half
    y = first + 0.5 * (position if left else count - 1 - position)
    edge = axes.get_xlim()[0 if left else 1]
    x = edge + (0.27 if left else -0.27) * (count - 1)
    axes.plot([rank, rank, x], [0, y, y], color=style.VERMILLION if base else style.GREY, linewidth=0.9)
    text = f"{name}  {rank:.1f}" if left else f"{rank:.1f}  {name}"
    look: dict[str, Any] = {
        "fontweight": "bold" if base else "normal",
        "color": style.VERMILLION if base else style.BLACK,
    }
    axes.text(x, y, f" {text} ", ha="right" if left else "left", va="center", fontsize=style.SMALL + 1, **look)


def _diverging() -> "Colormap":
    """Orange for losses, white for nothing, blue for gains; both ends darken alike."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#6B2A00", style.VERMILLION, "#F3C9A5", "#FFFFFF", "#BFDDEF", style.BLUE, "#00263B"]
    return LinearSegmentedColormap.from_list("losses and gains", stops)
