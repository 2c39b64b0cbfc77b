"""partition.png: the classes of each client, and its label noise, speed, class imbalance and size.

Clients are sorted by the first property in which they differ, as in `selection.png`. Properties that are equal for all
clients are a line of text.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.record import population
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

IN_MAP = "class imbalance"  # visible in the map of classes
SPREAD = 20.0  # ratio of the largest to the median value from which a strip is logarithmic


def draw(info: RunInfo) -> "Figure":
    """Return the figure. A population of more than 400 clients is shown in groups of neighbours."""
    count = len(info.class_counts)
    facts = population.list_traits(info)
    order, sorted_by = sort_clients(info)
    edges = style.group_starts(count)
    strips = [fact for fact in facts if fact.varies and fact.word != IN_MAP]
    height = float(np.clip(1.8 + 0.08 * count, 3.0, 6.5))
    *first, last = ["classes", *(fact.word for fact in strips)]
    title = f"Partition: {', '.join(first)}{' and ' if first else ''}{last} of each client"
    figure = style.new_run_figure(info, title, style.COLUMN if len(strips) <= 1 else style.PAGE, height)
    if common := "; ".join(fact.common for fact in facts if fact.common and not fact.varies):
        text = style.wrap(f"equal for all clients: {common}", figure.get_figwidth() - 0.1)
        figure.supxlabel(text, x=0.01, ha="left", fontsize=style.TEXT, color="#555555")
    widths = [2.6] + [1.4] * len(strips)
    grid = figure.subplots(1, len(widths), sharey=True, squeeze=False, width_ratios=widths)[0]
    label = f", sorted by {sorted_by}" if sorted_by else ""
    label = f"client{label}" if len(edges) == count else f"clients{label} (about {count / len(edges):.0f} in each row)"
    image = _heat_map(grid[0], population.class_shares(info.class_counts)[order], edges, label)
    style.name_rows(grid[0], order, sorted_by_id=not sorted_by)
    bar = figure.colorbar(image, ax=grid[0], location="top", aspect=30, ticks=[0, 5, 10, 25, 50, 100])
    bar.set_label("share of the client's samples, %", fontsize=style.TEXT)
    bar.ax.tick_params(labelsize=style.TEXT, length=2)
    for axes, fact in zip(grid[1:], strips, strict=True):
        draw_strip(axes, fact.values[order], edges, fact.label)
    return figure


def sort_clients(info: RunInfo) -> tuple[Ids, str]:
    """Return the clients in descending order of the first property in which they differ, and its name.

    Clients without differences are in the order of their ids, or by class if they are too many for separate rows. The
    name is "" for ids.
    """
    fact = population.find_main_trait(info)
    if fact is not None:
        return np.argsort(-fact.values, kind="stable").astype(np.int64), fact.word
    count = len(info.class_counts)
    return (by_class(info.class_counts), "most frequent class") if count > style.MAX_ROWS else (np.arange(count), "")


def by_class(class_counts: np.ndarray) -> Ids:
    """Return the clients ordered by their most frequent class, those with its largest shares first."""
    shares = population.class_shares(class_counts)
    return np.lexsort((-shares.max(axis=1), shares.argmax(axis=1))).astype(np.int64)


def group_means(rows: np.ndarray, edges: Ids) -> Float64[np.ndarray, "..."]:
    """Return the mean of each group of neighbouring rows."""
    sizes = np.diff(np.append(edges, len(rows)))
    sums = np.add.reduceat(rows.astype(np.float64), edges, axis=0)
    means: np.ndarray = (sums.T / sizes).T
    return means


def _heat_map(axes: "Axes", shares: np.ndarray, edges: Ids, label: str) -> "AxesImage":
    from matplotlib.colors import PowerNorm

    count, n_classes = shares.shape
    extent = (-0.5, n_classes - 0.5, count - 0.5, -0.5)
    norm = PowerNorm(0.5, 0, 100)  # a tenth of the samples differs visibly from none and from all
    image = style.draw_heat_map(axes, 100 * group_means(shares, edges), extent, cmap="Blues", norm=norm)
    axes.set_xlabel("class")
    axes.set_ylabel(label)
    style.use_integer_ticks(axes.xaxis, 10)
    return image


def draw_strip(axes: "Axes", values: np.ndarray, edges: Ids, label: str) -> None:
    """Draw one bar for each row of clients, next to a panel that names the rows."""
    count = len(values)
    sizes = np.diff(np.append(edges, count))
    means = group_means(np.nan_to_num(values, nan=0.0, posinf=0.0), edges)
    axes.barh(
        edges + sizes / 2 - 0.5, means, height=sizes * (0.8 if count <= 120 else 1), color=style.GREY, linewidth=0
    )
    axes.set_xlabel(style.wrap(label, 0.95))
    median, largest = float(np.median(means)), float(means.max())
    if means.min() > 0 and largest > SPREAD * median and largest > 1:  # shares stay linear
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, largest * 1.05 if largest > 0 else 1)
    style.format_axes(axes)
    axes.tick_params(labelleft=False, left=False)
