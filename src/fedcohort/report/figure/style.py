"""Elements that the figures share: colours, axes, legends, and a title that names the run.

The colours can be distinguished by colour-blind readers (Okabe and Ito).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int64

from fedcohort.host import disk
from fedcohort.record.heterogeneity import name_heterogeneity
from fedcohort.record.observer import RunInfo
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
BLACK = "#222222"
GREY = "#8A8A8A"
PALE = "#F1F1F1"
DPI = 150
SMALL = 9.0
TITLE = 12.0
COLUMN, PAGE = 3.5, 7.2  # inches: width of a column and of a page of a paper
LETTER = 0.6  # mean width of a letter divided by its font size; bold letters are wider
HEAD = 0.66  # inches above the panels, for the two lines of the title
COUNTABLE = 100  # points that have markers, and rows of a heat map that are separated by lines
MAX_ROWS = 400  # rows or columns that a heat map shows separately
NAMED = 60  # rows, sorted by a property, that have the ids of their clients
FORMATS = ("png", "pdf", "svg")


def figure(info: RunInfo, what: str, width: float, height: float) -> "Figure":
    """Return a figure of a run, with width and height in inches, titled with a text and the run."""
    return titled(what, describe_run(info), width, height)


def titled(title: str, note: str, width: float, height: float, *, constrained: bool = True) -> "Figure":
    """Return a figure with a title in bold face and a smaller line below it.

    Args:
        title: the title.
        note: the line below it.
        width: in inches.
        height: in inches.
        constrained: whether matplotlib places the panels, which takes seconds for dozens of them.
    """
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(width, height))
    if constrained:
        canvas.set_layout_engine("constrained", rect=(0, 0, 1, 1 - HEAD / height))
    for text, top, largest, letter, weight, colour in (
        (title, 0.12, TITLE, 1.15 * LETTER, "bold", BLACK),
        (note, 0.37, SMALL, LETTER, "normal", "#555555"),
    ):
        size = min(largest, 72 * (width - 0.24) / (letter * max(len(text), 1)))
        y = 1 - top / height
        canvas.text(0.12 / width, y, text, ha="left", va="top", fontsize=size, fontweight=weight, color=colour)
    return canvas


def describe_run(info: RunInfo) -> str:
    """Return text such as `flash + scaffold on fashion_mnist, noniid30_noise15, 50 clients, seed 0`."""
    choices = info.choices
    experiment = f"experiment={choices['experiment']}: " if "experiment" in choices else ""
    method = experiment + " + ".join(choices[group] for group in ("selector", "agg") if group in choices)
    data = f"{choices.get('dataset', 'data')}, {name_heterogeneity(info)}"
    return f"{method}{' on ' if method else ''}{data}, {len(info.n_train)} clients, seed {info.seed}"


def tidy(axes: "Axes", *, grid: bool = True) -> None:
    """Draw two spines, a faint grid behind the data and small tick labels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(labelsize=SMALL, color=GREY, labelcolor=BLACK)
    axes.xaxis.label.set_fontsize(SMALL + 1)
    axes.yaxis.label.set_fontsize(SMALL + 1)
    if grid:
        axes.grid(True, color="#E3E3E3", linewidth=0.7)
        axes.set_axisbelow(True)


def whole_numbers(axis: "Axis", max_ticks: int = 9) -> None:
    """Put ticks at integers only: there is no round 2.5."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(max_ticks, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def count_rounds(axes: "Axes", max_ticks: int = 9) -> None:
    """Label the horizontal axis as communication rounds."""
    axes.set_xlabel("communication round")
    whole_numbers(axes.xaxis, max_ticks)


def line(axes: "Axes", x: "ArrayLike", y: "ArrayLike", width: float = 1.3, **look: Any) -> None:  # noqa: ANN401
    """Draw a line, with markers if its points can be counted; look: options of `Axes.plot`."""
    marker = "o" if len(np.asarray(x)) <= COUNTABLE else ""
    axes.plot(x, y, **{"linewidth": width, "marker": marker, "markersize": 2.2 * width, **look})


def legend(canvas: "Figure", columns: int, handles: "Sequence[Artist] | None" = None) -> None:
    """Put a legend below the panels.

    Args:
        canvas: the figure.
        columns: largest number of columns.
        handles: the entries; None for those of all panels, each label once.
    """
    if handles is None:
        by_label: dict[str, Artist] = {}
        for axes in canvas.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                by_label.setdefault(label, handle)
        handles = list(by_label.values())
    canvas.legend(handles=handles, loc="outside lower left", ncols=columns, fontsize=SMALL, frameon=False)


def ramp() -> "Colormap":
    """Return a colour map from white through one hue that darkens, which is readable in print and without colours."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ramp", ["#FFFFFF", "#CFE3F1", SKY, BLUE, "#00263B"])


def separate(axes: "Axes", rows: int, columns: int) -> None:
    """Draw white lines between the cells of a heat map if they can be counted."""
    if rows <= COUNTABLE and columns <= COUNTABLE:
        x, y = axes.get_images()[0].get_extent()[:2], axes.get_images()[0].get_extent()[2:]
        axes.hlines(np.linspace(*y, rows + 1)[1:-1], *x, color="white", linewidth=0.6)
        axes.vlines(np.linspace(*x, columns + 1)[1:-1], *y, color="white", linewidth=0.6)


def name_rows(axes: "Axes", clients: Ids, *, sorted_by_id: bool) -> None:
    """Put the ids of clients at their rows: all if they fit, else none unless the rows are in the order of ids."""
    if sorted_by_id:
        whole_numbers(axes.yaxis, 10)
    elif len(clients) <= NAMED:
        axes.set_yticks(np.arange(len(clients)), [str(k) for k in clients])
        axes.tick_params(axis="y", labelsize=float(np.clip(280 / len(clients), 5.0, SMALL)), length=0)
    else:
        axes.set_yticks([])


def panels(
    count: int, title: str, note: str, *, width: float = PAGE, aspect: float = 0.75
) -> "tuple[Figure, list[Axes]]":
    """Return a figure of small multiples with common axes, and its panels row by row.

    Args:
        count: number of panels.
        title: what the figure shows.
        note: the second line, such as the number of runs.
        width: in inches, `COLUMN` or `PAGE` of a paper.
        aspect: height of a panel divided by its width.
    """
    across = min(count, 2 if width <= COLUMN else 4)
    down = -(-count // across)
    figure = titled(title, note, width, HEAD + 0.5 + down * (aspect * width / across + 0.2))
    grid = list(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat)
    for axes in grid[count:]:
        axes.remove()
    for axes in grid[max(0, count - across) : count]:
        axes.tick_params(labelbottom=True)
    for axes in grid[:count]:
        tidy(axes)
    return figure, grid[:count]


def save(canvas: "Figure", path: Path, formats: Sequence[str] = ("png",)) -> list[Path]:
    """Write the figure in each of the formats and return the files; path: name of the file, with any suffix.

    An existing file is replaced once the new one is complete.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    files = [path.with_suffix(f".{name}") for name in formats]
    for file in files:
        with disk.replace_atomically(file) as draft:
            if file.suffix == ".png":  # the same pixels as `savefig`, which draws twice, first for the layout
                canvas.set_dpi(DPI)
                agg: Any = FigureCanvasAgg(canvas)  # its methods have no types
                agg.print_png(draft)
            else:
                canvas.savefig(draft, dpi=DPI, format=file.suffix[1:])
    return files


def bins(count: int, limit: int = MAX_ROWS) -> Int64[np.ndarray, "_edges"]:
    """Return the start of each group, for at most `limit` groups of about equal size; [0, 1, 2, ...] if all fit."""
    groups = max(1, min(count, limit))
    return (np.arange(groups, dtype=np.int64) * count) // groups


def virtual_unit(seconds: Sequence[float]) -> tuple[float, str]:
    """Return the length in seconds and the name of the unit that suits a span of virtual time."""
    longest = max((value for value in seconds if np.isfinite(value)), default=0.0)
    for size, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if longest >= 5 * size:
            return size, name
    return 1.0, "seconds"
