"""The two figures of a study: the differences by setting and method, and the methods' mean ranks."""

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

DARK = 0.55  # of the colour scale: numbers on darker squares are white
MAX_NUMBERED = 25  # ranks on an axis; with more of them only each fifth has a number


@dataclass(frozen=True)
class SettingMap:
    """Differences to the baseline, settings as lines and methods as columns.

    Attributes:
        settings: labels of the lines.
        methods: labels of the columns.
        difference: in `unit`; NaN if there is no result.
        is_clear: whether the difference is distinguishable from 0.
        cuts: columns before which a wider line separates methods, oracles and references.
        unit: unit of a difference, as "points".
        baseline: to which differences are taken.
        note: second line of the title.
    """

    settings: Sequence[str]
    methods: Sequence[str]
    difference: Float64[np.ndarray, "settings methods"]
    is_clear: Bool[np.ndarray, "settings methods"]
    cuts: Sequence[int]
    unit: str
    baseline: str
    note: str


def draw_map(data: SettingMap, path: Path) -> None:
    """Draw a square for each setting and method: its colour is the difference, hatched if indistinguishable from 0."""
    from matplotlib.colors import SymLogNorm
    from matplotlib.patches import Patch, Rectangle

    n_settings, n_methods = data.difference.shape
    width, height = 3.6 + 0.62 * n_methods, 2.7 + 0.42 * n_settings
    canvas = style.titled(f"Difference to {data.baseline}, {data.unit}", data.note, width, height)
    axes = canvas.subplots()
    largest = max(float(np.nanmax(np.abs(data.difference), initial=0.0)), 1.0)
    norm = SymLogNorm(linthresh=1.0, vmin=-largest, vmax=largest)
    axes.imshow(np.ma.masked_invalid(data.difference), cmap=_diverging(), norm=norm, aspect="auto")
    hatch: dict[str, Any] = {"hatch": "////", "edgecolor": "#B8B8B8"}
    for i, j in np.ndindex(n_settings, n_methods):
        value, is_clear = data.difference[i, j], data.is_clear[i, j]
        if not np.isfinite(value):
            axes.text(j, i, "–", ha="center", va="center", fontsize=style.SMALL, color=style.GREY)
            continue
        look: dict[str, Any] = {"fontweight": "bold"}
        if not is_clear:
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, linewidth=0, **hatch))
            look = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}}
        is_dark = is_clear and abs(float(norm(value)) - 0.5) > DARK / 2
        text = f"{value:+.1f}" if abs(value) < 10 else f"{value:+.0f}"
        colour = "white" if is_dark else style.BLACK
        axes.text(j, i, text, ha="center", va="center", fontsize=8.5, color=colour, **look)
    axes.set_xticks(range(n_methods), data.methods, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(n_settings), data.settings)
    style.tidy(axes, grid=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    style.separate(axes, n_settings, n_methods)
    for cut in data.cuts:
        axes.axvline(cut - 0.5, color="white", linewidth=6)
        axes.axvline(cut - 0.5, color=style.BLACK, linewidth=1)
    label = f"not distinguishable from {data.baseline}"
    style.legend(canvas, 1, [Patch(facecolor="white", label=label, **hatch)])
    style.save(canvas, path)


def draw_ranks(ranks: Mapping[str, float], baseline: str, note: str, path: Path) -> None:
    """Draw mean ranks on an axis, the best at the left."""
    names = sorted(ranks, key=lambda name: ranks[name])
    half = (len(names) + 1) // 2
    canvas = style.titled("Mean rank over settings, 1 is best", note, 8.0, 1.8 + 0.26 * half)
    axes = canvas.subplots()
    low, high = 1, len(names)
    axes.set_xlim(low - 0.30 * (high - low), high + 0.30 * (high - low))
    first = 0.5
    axes.set_ylim(first + 0.5 * half + 0.2, -0.8)
    axes.hlines(0, low, high, color=style.BLACK, linewidth=1.0)
    step = 1 if high <= MAX_NUMBERED else 5
    for tick in range(low, high + 1):
        axes.vlines(tick, -0.12, 0, color=style.BLACK, linewidth=1.0)
        if tick == low or tick % step == 0:
            axes.text(tick, -0.2, str(tick), ha="center", va="bottom", fontsize=style.SMALL)
    for position, name in enumerate(names):
        # the better half is written at the left and the other at the right, so that lines do not cross
        is_left = position < half
        y = first + 0.5 * (position if is_left else high - 1 - position)
        _label(axes, name, ranks[name], y, is_left, name == baseline)
    axes.set_axis_off()
    style.save(canvas, path)


def _label(axes: "Axes", name: str, rank: float, y: float, is_left: bool, is_baseline: bool) -> None:
    """Write the name of a method at the height `y` of one side, with a line to its rank."""
    low, high = axes.get_xlim()
    shift = 0.27 * (high - low) / 1.6  # 0.27 of the distance between the first and the last rank
    x = low + shift if is_left else high - shift
    axes.plot([rank, rank, x], [0, y, y], color=style.VERMILLION if is_baseline else style.GREY, linewidth=0.9)
    text = f"{name}  {rank:.1f}" if is_left else f"{rank:.1f}  {name}"
    colour, weight = (style.VERMILLION, "bold") if is_baseline else (style.BLACK, "normal")
    look: dict[str, Any] = {"ha": "right" if is_left else "left", "color": colour, "fontweight": weight}
    axes.text(x, y, f" {text} ", va="center", fontsize=style.SMALL + 1, **look)


def _diverging() -> "Colormap":
    """Return a colour map with orange for losses, white for 0 and blue for gains; both ends have equal lightness."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = ["#6B2A00", style.VERMILLION, "#F3C9A5", "#FFFFFF", "#BFDDEF", style.BLUE, "#00263B"]
    return LinearSegmentedColormap.from_list("losses and gains", stops)
