"""Elements that the figures share: sizes, colours, axes, legends, small multiples, and a title that names the run.

Figures have the width of a column or of a page of a paper, and text of 8 points. The colours can be distinguished by
colour-blind readers (Okabe and Ito), and no difference is shown by a colour only.
"""

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Int64

from fedcohort.host import disk
from fedcohort.record.observer import RunInfo
from fedcohort.record.overview import name_heterogeneity
from fedcohort.results.method_names import METHOD_FOLDERS, name_method
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import ArrayLike

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
SKY_BLUE = "#56B4E9"
BLACK = "#222222"
GREY = "#8A8A8A"
PALE_GREY = "#F1F1F1"
DPI = 200
FONT_SIZE = 8.0  # points
MIN_FONT_SIZE = 5.0  # points: smallest text, for the ids of many rows
COLUMN_WIDTH, PAGE_WIDTH = 85 / 25.4, 180 / 25.4  # inches: width of a column and of a page of a paper
LETTER_RATIO = 0.56  # mean width of a letter divided by its font size
BOLD_WIDTH_RATIO = 1.15  # width of a bold letter divided by that of another
LINE_HEIGHT = 1.35 * FONT_SIZE / 72  # inches: height of a line of text
LINE_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINE_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
HATCH_PATTERN = "//////"
MAX_MARKED_POINTS = 100  # points that have markers, and rows of a heat map that are separated by lines
MAX_MAP_ROWS = 400  # rows or columns that a heat map shows separately
MAX_NAMED_ROWS = 60  # rows, sorted by a property, that have the ids of their clients
FILE_FORMATS = ("png", "pdf", "svg")


def make_run_figure(info: RunInfo, title: str, width: float, height: float) -> "Figure":
    """Return a figure with the title `title` and a note on the run `info`; `width` and `height` are in inches."""
    return make_figure(title, describe_run(info), width, height)


def make_figure(title: str, note_text: str, width: float, height: float) -> "Figure":
    """Return a figure with a title in bold face and a note below it, each in as many lines as it needs.

    Args:
        title: the title.
        note_text: text such as the number of runs.
        width: width of the figure in inches.
        height: height of the panels with labels and legend, in inches; the title needs additional height.
    """
    from matplotlib.figure import Figure

    bold_title = wrap_text(title, width / BOLD_WIDTH_RATIO - 0.1)
    title_height = LINE_HEIGHT * (bold_title.count("\n") + 1) + 0.08
    wrapped_note = wrap_text(note_text, width - 0.1)
    total_height = height + title_height + LINE_HEIGHT * (wrapped_note.count("\n") + 1) + 0.05
    canvas = Figure(figsize=(width, total_height))
    canvas.set_layout_engine("constrained", rect=(0, 0, 1, height / total_height), w_pad=0.03, h_pad=0.03)
    text_style: dict[str, Any] = {"ha": "left", "va": "top", "fontsize": FONT_SIZE, "linespacing": 1.15}
    canvas.text(0.05 / width, 1 - 0.05 / total_height, bold_title, color=BLACK, fontweight="bold", **text_style)
    canvas.text(0.05 / width, 1 - title_height / total_height, wrapped_note, color="#555555", **text_style)
    return canvas


def wrap_text(text: str, max_width_inches: float) -> str:
    """Return `text` in lines that are at most `max_width_inches` wide; a number and its unit stay on one line."""
    text = re.sub(r"(?<=\d) (?=\w|%)", "\u00a0", text)
    return "\n".join(
        textwrap.wrap(text, max(int(72 * max_width_inches / (LETTER_RATIO * FONT_SIZE)), 8), break_long_words=False)
    )


def describe_run(info: RunInfo) -> str:
    """Return a text such as "FLASH + SCAFFOLD on digits, noniid30_noise15, 50 clients, seed 0" for the run `info`."""
    choices = info.choices
    experiment_text = f"experiment={choices['experiment']}: " if "experiment" in choices else ""
    method = experiment_text + " + ".join(name_method(choices[group]) for group in METHOD_FOLDERS if group in choices)
    federation_text = f"{choices.get('dataset', 'data')}, {name_heterogeneity(info)}"
    return (
        f"{method}{' on ' if method else ''}{federation_text}, {len(info.n_train)} "
        f"client{'s' * (len(info.n_train) != 1)}, seed {info.seed}"
    )


def format_axes(axes: "Axes", grid_axis: Literal["both", "x", ""] = "both") -> None:
    """Draw two spines of the panel `axes`, a faint grid along `grid_axis` ("" for none), and small tick labels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(labelsize=FONT_SIZE, color=GREY, labelcolor=BLACK)
    axes.xaxis.label.set_fontsize(FONT_SIZE)
    axes.yaxis.label.set_fontsize(FONT_SIZE)
    if grid_axis:
        axes.grid(True, axis=grid_axis, color="#E3E3E3", linewidth=0.7)
        axes.set_axisbelow(True)


def use_integer_ticks(axis: "Axis", max_ticks: int = 6) -> None:
    """Put at most `max_ticks` ticks on `axis`, at integers only: there is no round 2.5."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(max_ticks, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def label_rounds_axis(axes: "Axes") -> None:
    """Label the horizontal axis of the panel `axes` as communication rounds."""
    axes.set_xlabel("communication round", fontsize=FONT_SIZE)
    use_integer_ticks(axes.xaxis)


def draw_line(axes: "Axes", x: "ArrayLike", y: "ArrayLike", line_width: float = 1.3, **line_style: Any) -> None:  # noqa: ANN401
    """Draw `y` over `x`, [points], into `axes`, with markers if they are few; `line_width` is in typographic points.

    `line_style` has options of `Axes.plot`.
    """
    marker = "o" if len(np.asarray(x)) <= MAX_MARKED_POINTS else ""
    axes.plot(x, y, **{"linewidth": line_width, "marker": marker, "markersize": 2.2 * line_width, **line_style})


def add_legend(canvas: "Figure", handles: "Sequence[Artist] | None" = None) -> None:
    """Put a legend below the panels, in as many columns as the width has room for.

    Args:
        canvas: the figure.
        handles: the entries; None for those of all panels, each label once.
    """
    if handles is None:
        panel_legends = [axes.get_legend_handles_labels() for axes in canvas.axes]
        handles = list(
            {
                label: handle
                for handles_and_labels in panel_legends
                for handle, label in zip(*handles_and_labels, strict=True)
            }.values()
        )
    if handles:
        label_length = max(len(str(handle.get_label())) for handle in handles)
        n_columns = int(canvas.get_figwidth() / (0.42 + label_length * LETTER_RATIO * FONT_SIZE / 72))
        options: dict[str, Any] = {"frameon": False, "fontsize": FONT_SIZE, "handlelength": 1.8, "columnspacing": 1.0}
        canvas.legend(handles=handles, loc="outside lower left", ncols=min(max(n_columns, 1), len(handles)), **options)


def draw_heat_map(axes: "Axes", map_values: np.ndarray, **image_options: Any) -> "AxesImage":  # noqa: ANN401
    """Draw a heat map, with white lines between its cells if there are few.

    Args:
        axes: the panel.
        map_values: [rows, columns].
        image_options: options of `Axes.imshow`; without `extent`, each cell has one unit.
    """
    n_rows, n_columns = map_values.shape
    heat_map = axes.imshow(map_values, aspect="auto", interpolation="nearest", **image_options)
    if n_rows <= MAX_MARKED_POINTS and n_columns <= MAX_MARKED_POINTS:
        left_edge, right_edge, bottom, top = heat_map.get_extent()
        axes.hlines(np.linspace(bottom, top, n_rows + 1)[1:-1], left_edge, right_edge, color="white", linewidth=0.6)
        axes.vlines(np.linspace(left_edge, right_edge, n_columns + 1)[1:-1], bottom, top, color="white", linewidth=0.6)
    format_axes(axes, "")
    return heat_map


def label_client_rows(axes: "Axes", client_ids: Ids, *, sorted_by_id: bool) -> None:
    """Label the rows of `axes` with integer ticks if `sorted_by_id`, or with the ids `client_ids` if there is room."""
    if sorted_by_id:
        use_integer_ticks(axes.yaxis, 10)
    else:
        row_labels = [str(k) for k in client_ids] if len(client_ids) <= MAX_NAMED_ROWS else []
        axes.set_yticks(np.arange(len(row_labels)), row_labels)
        axes.tick_params(axis="y", labelsize=fit_row_font(axes, len(client_ids)), length=0)


def fit_row_font(axes: "Axes", rows: int) -> float:
    """Return the font size in points that fits into each of the `rows` rows of the panel `axes`."""
    return float(np.clip(0.6 * 72 * axes.figure.bbox.height / axes.figure.dpi / max(rows, 1), MIN_FONT_SIZE, FONT_SIZE))


def make_panels(
    panel_titles: Sequence[str], title: str, note_text: str, *, columns: int, height: float, shares_y_axis: bool = True
) -> "tuple[Figure, list[Axes]]":
    """Return a figure of small multiples and its panels; with more than two panels in a row it is as wide as a page.

    Args:
        panel_titles: titles of the panels.
        title: title of the figure.
        note_text: text such as the number of runs.
        columns: largest number of panels side by side.
        height: height of a panel in inches.
        shares_y_axis: whether the panels have the same vertical axis.
    """
    n_panels, columns = len(panel_titles), min(len(panel_titles), columns)
    n_rows, width = -(-n_panels // columns), COLUMN_WIDTH if columns <= 2 else PAGE_WIDTH
    canvas = make_figure(title, note_text, width, 0.75 + n_rows * (height + LINE_HEIGHT))
    panel_grid = list(canvas.subplots(n_rows, columns, sharex=True, sharey=shares_y_axis, squeeze=False).flat)
    for axes in panel_grid[n_panels:]:
        axes.remove()
    for i, (axes, name) in enumerate(zip(panel_grid, panel_titles, strict=False)):
        axes.set_title(wrap_text(name, width / columns - 0.25), fontsize=FONT_SIZE, loc="left", color=BLACK, pad=3)
        format_axes(axes)
        if i + columns >= n_panels:  # the lowest panel of its column
            axes.tick_params(labelbottom=True)
            label_rounds_axis(axes)
    return canvas, panel_grid[:n_panels]


def save_figure(canvas: "Figure", path: Path, file_formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write the figure `canvas` in each of the formats and return the files.

    `path` is the name of the file, with any suffix; `file_formats` are suffixes, such as "png". An existing file is
    replaced once the new one is complete.
    """
    from matplotlib.backend_bases import get_registered_canvas_class

    figure_files = {file_format: path.with_suffix(f".{file_format}") for file_format in file_formats}
    for file_format, figure_file in figure_files.items():
        with disk.write_file_atomically(figure_file) as draft_path:
            canvas.set_dpi(DPI)  # printing a pdf or svg changes it
            # the same bytes as `savefig`, which draws twice, first for the layout
            getattr(get_registered_canvas_class(file_format)(canvas), f"print_{file_format}")(draft_path)
    return list(figure_files.values())


def find_group_starts(n_rows: int, max_groups: int = MAX_MAP_ROWS) -> Int64[np.ndarray, "_edges"]:
    """Return the first row of each group, [groups]; `n_rows` rows form at most `max_groups` groups of similar size."""
    n_groups = max(1, min(n_rows, max_groups))
    return (np.arange(n_groups, dtype=np.int64) * n_rows) // n_groups


def choose_time_unit(durations: Sequence[float]) -> tuple[float, str]:
    """Return the length in seconds and the name of the time unit that suits `durations`, in seconds."""
    longest_duration = max((duration for duration in durations if np.isfinite(duration)), default=0.0)
    for unit_seconds, unit_name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if longest_duration >= 5 * unit_seconds:
            return unit_seconds, unit_name
    return 1.0, "seconds"
