"""Figures that compare methods: points with intervals, and a map of the differences by method and setting.

The points, one for each method, are differences to a baseline, means, or mean ranks. Studies have the map.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int64

from fedcohort.report.figure import style
from fedcohort.results.method_names import METHOD_GROUPS, name_method

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

STYLE_BY_SIGN = {1: (style.BLUE, "o"), 0: (style.GREY, "D"), -1: (style.VERMILLION, "s")}  # by the sign of a verdict
ROW_HEIGHT = 0.165  # inches
MAX_COLUMN_LETTERS = 28  # letters of a name that leave room for a panel in a column of a paper
DARK_SQUARE_THRESHOLD = 0.55  # of the colour scale: numbers on darker squares are white
NUMBER_FONT_SIZE = 7.0  # points: size of the numbers in the squares
CELL_WIDTH, CELL_HEIGHT = 0.34, 0.15  # inches: smallest width of a square, which holds "-5.9*", and its height
MAX_LABEL_LINES = 3  # of the label of a setting


@dataclass(frozen=True)
class IntervalRow:
    """A method's value with its interval.

    Attributes:
        name: published name.
        group: group of the method; rows of a group follow each other.
        value: value that the point shows.
        low: lower end of the interval; NaN for none.
        high: upper end of the interval; NaN for none.
        sign: 1, 0 or -1: significantly better than the baseline, neither, or significantly worse.
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


def draw_intervals(
    rows: Sequence[IntervalRow], title: str, note: str, label: str, baseline_value: float | None = None
) -> "Figure":
    """Return a figure with one point and its interval per row, such as a method's difference to the baseline.

    Args:
        rows: the rows, from top to bottom.
        title: what the figure shows.
        note: text such as the number of runs.
        label: label of the horizontal axis.
        baseline_value: value of the baseline, a vertical line; None for none.
    """
    row_names, row_groups = [row.name for row in rows], [row.group for row in rows]
    width = style.COLUMN_WIDTH if max(map(len, (*row_names, *row_groups))) <= MAX_COLUMN_LETTERS else style.PAGE_WIDTH
    canvas = style.make_figure(title, note, width, 1.0 + ROW_HEIGHT * (len(rows) + len(set(row_groups))))
    axes = canvas.subplots()
    for row, y in zip(rows, name_rows_by_group(axes, row_names, row_groups), strict=True):
        colour, marker = STYLE_BY_SIGN[row.sign]
        point_style: dict[str, Any] = {
            "color": colour,
            "fmt": marker,
            "capsize": 2,
            "markersize": 3.5,
            "linewidth": 1.0,
        }
        error_bars = [[row.value - row.low], [row.high - row.value]] if np.isfinite(row.high) else None
        fill_style = "full" if row.is_filled else "none"
        axes.errorbar([row.value], [y], xerr=error_bars, fillstyle=fill_style, label=row.verdict or "_", **point_style)
    if baseline_value is not None:
        axes.axvline(baseline_value, color=style.BLACK, linewidth=0.9)
    axes.set_xlabel(label)
    style.format_axes(axes, "x")
    style.add_legend(canvas)
    return canvas


def name_rows_by_group(axes: "Axes", row_names: Sequence[str], row_groups: Sequence[str]) -> Int64[np.ndarray, "_rows"]:
    """Write names at rows, those of a group below the group's name, and return the row of each name.

    Args:
        axes: a panel whose vertical axis points down, one unit for each row.
        row_names: names of the rows, from top to bottom; the rows of a group follow each other.
        row_groups: group of each row; a single group is not written.
    """
    row_labels, name_positions = list[str](), list[int]()
    for i, (row_name, row_group) in enumerate(zip(row_names, row_groups, strict=True)):
        if len(set(row_groups)) > 1 and row_group not in row_groups[:i]:
            row_labels.append(f"{row_group}:")
        name_positions.append(len(row_labels))
        row_labels.append(row_name)
    axes.set_yticks(range(len(row_labels)), row_labels)
    axes.set_ylim(len(row_labels) - 0.4, -0.6)
    for i, row_label in enumerate(axes.get_yticklabels()):
        row_label.set_fontweight("normal" if i in name_positions else "bold")
    axes.tick_params(axis="y", length=0)
    return np.array(name_positions, dtype=np.int64)


def draw_difference_map(
    differences: "pd.DataFrame", is_significant: np.ndarray, groups: Sequence[str], title: str, note: str, path: Path
) -> None:
    """Draw methods as rows and settings as columns, in blocks that have the width of a page at most.

    Methods are grouped, and sorted by their mean difference within the group. Each square has its number, which is bold
    with an asterisk if the difference is significant.

    Args:
        differences: difference to the baseline by label of the setting (rows) and by option of the method (columns);
            NaN if there is no result.
        is_significant: whether a difference is significant, [settings, methods].
        groups: group of each method, from `METHOD_GROUPS`.
        title: title of the figure.
        note: second line of the title.
        path: path of the file.
    """
    from matplotlib.colors import SymLogNorm

    values, n_settings = differences.to_numpy(dtype=float), len(differences)
    method_names = [name_method(str(method)) for method in differences]
    margin_inches = 0.15 + max(map(len, (*method_names, *groups))) * style.LETTER_RATIO * style.FONT_SIZE / 72
    n_blocks = -(-n_settings // int((style.PAGE_WIDTH - margin_inches) / CELL_WIDTH))
    width = style.COLUMN_WIDTH if margin_inches + CELL_WIDTH * n_settings <= style.COLUMN_WIDTH else style.PAGE_WIDTH
    labels = [_wrap_setting_label(label) for label in differences.index]
    label_inches = (
        max(len(line) for label in labels for line in label.split("\n")) * style.LETTER_RATIO * NUMBER_FONT_SIZE / 72
    )
    mean_differences = differences.mean().fillna(0.0).to_numpy(dtype=float)
    method_order = np.lexsort((-mean_differences, np.array([METHOD_GROUPS.index(group) for group in groups])))
    setting_blocks = np.array_split(np.arange(n_settings), n_blocks)
    has_result = [np.isfinite(values[block][:, method_order]).any(0) for block in setting_blocks]
    rows = [method_order[has_any_result] if has_any_result.any() else method_order for has_any_result in has_result]
    block_heights = [
        CELL_HEIGHT * (len(block) + len({groups[i] for i in block})) + label_inches + 0.1 for block in rows
    ]
    canvas = style.make_figure(title, note, width, sum(block_heights))
    largest_difference = max(float(np.nanmax(np.abs(values), initial=0.0)), 1.0)
    colour_scale = SymLogNorm(linthresh=1.0, vmin=-largest_difference, vmax=largest_difference)
    block_axes = canvas.subplots(n_blocks, squeeze=False, height_ratios=block_heights)[:, 0]
    for axes, block, methods in zip(block_axes, setting_blocks, rows, strict=True):
        block_cells = np.ix_(block, methods)
        row_positions = name_rows_by_group(axes, [method_names[i] for i in methods], [groups[i] for i in methods])
        _draw_squares(axes, values[block_cells].T, is_significant[block_cells].T, row_positions, colour_scale)
        axes.set_xticks(range(len(block)), [labels[i] for i in block], rotation=90, linespacing=1.0)
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="x", length=0, labelsize=NUMBER_FONT_SIZE)
    style.save_figure(canvas, path)


def _wrap_setting_label(label: str) -> str:
    """Wrap `label`, a setting's name, into at most `MAX_LABEL_LINES` lines; the line width is at least 14 letters."""
    lines = (textwrap.wrap(label, width) for width in range(max(14, len(label) // MAX_LABEL_LINES), len(label) + 15))
    return "\n".join(next(label_lines for label_lines in lines if len(label_lines) <= MAX_LABEL_LINES))


def _draw_squares(
    axes: "Axes", differences: np.ndarray, is_significant: np.ndarray, row_positions: np.ndarray, norm: "Normalize"
) -> None:
    row_values = np.full((row_positions[-1] + 1, differences.shape[1]), np.nan)
    row_values[row_positions] = differences
    style.draw_heat_map(axes, np.ma.masked_invalid(row_values), cmap="RdBu", norm=norm)
    for i, j in np.ndindex(*differences.shape):
        difference = differences[i, j]
        number_text = (
            f"{difference:+.1f}" if abs(difference) < 9.95 else f"{difference:+.0f}" if np.isfinite(difference) else "–"
        )
        colour = (
            "white"
            if np.isfinite(difference) and abs(float(norm(difference)) - 0.5) > DARK_SQUARE_THRESHOLD / 2
            else style.BLACK
        )
        font_style: dict[str, Any] = {"color": colour, "fontweight": "bold" if is_significant[i, j] else "normal"}
        number_text = number_text.replace("-", "−") + "*" * int(is_significant[i, j])
        label = axes.text(
            j, int(row_positions[i]), number_text, fontsize=NUMBER_FONT_SIZE, ha="center", va="center", **font_style
        )
        label.set_in_layout(False)  # hundreds of texts would take the layout seconds


def draw_ranks(ranks: Mapping[str, tuple[str, float, float, float]], baseline: str, note: str, path: Path) -> None:
    """Draw mean ranks with their intervals, the best of each group first, and the baseline's rank as a line.

    Args:
        ranks: group, mean rank, lower and upper end of its interval, by method.
        baseline: the method with the line.
        note: second line of the title.
        path: path of the file.
    """
    sorted_methods = sorted(ranks, key=lambda method: (METHOD_GROUPS.index(ranks[method][0]), ranks[method][1]))
    rows = [IntervalRow(name_method(method), *ranks[method]) for method in sorted_methods]
    label = f"mean rank, 1 is best (line: {name_method(baseline)})"
    baseline_rank = ranks[baseline][1] if baseline in ranks else None
    figure = draw_intervals(rows, "Mean rank over settings, with 95 % intervals", note, label, baseline_rank)
    style.save_figure(figure, path)
