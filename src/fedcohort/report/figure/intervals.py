"""Points with intervals, one for each method: differences to a baseline, means, or mean ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int64

from fedcohort.report.figure import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {1: (style.BLUE, "o"), 0: (style.GREY, "D"), -1: (style.VERMILLION, "s")}  # by the sign of a verdict
ROW_HEIGHT = 0.165  # inches
MAX_COLUMN_LETTERS = 28  # letters of a name that leave room for a panel in a column of a paper


@dataclass(frozen=True)
class Row:
    """A method's value with its interval.

    Attributes:
        name: published name.
        group: of the method; rows of a group follow each other.
        value: the point.
        low: lower end of the interval; NaN for none.
        high: upper end of the interval; NaN for none.
        sign: 1, 0 or -1: significantly better, neither, or significantly worse.
        verdict: entry of the legend; "" for none.
        is_filled: whether the point is solid.
    """

    name: str
    group: str
    value: float
    low: float
    high: float
    sign: int = 1
    verdict: str = ""
    is_filled: bool = True


def draw(rows: Sequence[Row], title: str, note: str, label: str, reference: float | None = None) -> "Figure":
    """Return the figure.

    Args:
        rows: from above.
        title: what the figure shows.
        note: text such as the number of runs.
        label: of the horizontal axis.
        reference: value of the baseline, a vertical line; None for none.
    """
    names, groups = [row.name for row in rows], [row.group for row in rows]
    width = style.COLUMN if max(map(len, (*names, *groups))) <= MAX_COLUMN_LETTERS else style.PAGE
    canvas = style.new_figure(title, note, width, 1.0 + ROW_HEIGHT * (len(rows) + len(set(groups))))
    axes = canvas.subplots()
    for row, y in zip(rows, name_rows_by_group(axes, names, groups), strict=True):
        colour, marker = LOOKS[row.sign]
        look: dict[str, Any] = {"color": colour, "fmt": marker, "capsize": 2, "markersize": 3.5, "linewidth": 1.0}
        ends = [[row.value - row.low], [row.high - row.value]] if np.isfinite(row.high) else None
        fill = "full" if row.is_filled else "none"
        axes.errorbar([row.value], [y], xerr=ends, fillstyle=fill, label=row.verdict or "_", **look)
    if reference is not None:
        axes.axvline(reference, color=style.BLACK, linewidth=0.9)
    axes.set_xlabel(label)
    style.format_axes(axes, "x")
    style.legend(canvas)
    return canvas


def name_rows_by_group(axes: "Axes", names: Sequence[str], groups: Sequence[str]) -> Int64[np.ndarray, "_rows"]:
    """Write names at rows, those of a group below the group's name, and return the row of each name.

    Args:
        axes: a panel whose rows point down.
        names: of the rows, from above; those of a group follow each other.
        groups: of each name; a single group is not written.
    """
    labels, rows = list[str](), list[int]()
    for i, (name, group) in enumerate(zip(names, groups, strict=True)):
        if len(set(groups)) > 1 and group not in groups[:i]:
            labels.append(f"{group}:")
        rows.append(len(labels))
        labels.append(name)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    for i, label in enumerate(axes.get_yticklabels()):
        label.set_fontweight("normal" if i in rows else "bold")
    axes.tick_params(axis="y", length=0)
    return np.array(rows, dtype=np.int64)
