"""partition.png: who holds which classes, how much of it, how noisy its labels are, and how slow it is."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.observe import population
from fedcohort.observe.figure import style
from fedcohort.record.observer import RunInfo
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

SPREAD = 20.0  # largest over median from which a strip is logarithmic


def draw(info: RunInfo, path: Path) -> None:
    """Draw it. A population of more than 400 is sorted by class and shown in groups of neighbours."""
    count = len(info.class_counts)
    order = by_class(info.class_counts) if count > style.MANY else np.arange(count)
    edges = style.bins(count)
    strips = _strips(info)
    height = float(np.clip(2.1 + 0.1 * count, 3.8, 7.5))
    *first, last = ["classes", *(word for word, *_ in strips)]
    title = f"Partition: {', '.join(first)} and {last} of each client"
    figure = style.figure(info, title, 6.2 + 1.6 * len(strips), height)
    widths, heights = [5.0] + [1.5] * len(strips), [0.12, height - 1.6]
    grid = figure.subplots(2, len(widths), sharey="row", squeeze=False, width_ratios=widths, height_ratios=heights)
    image = _heat_map(grid[1, 0], population.shares(info.class_counts)[order], edges)
    bar = figure.colorbar(image, cax=grid[0, 0], orientation="horizontal")
    bar.set_label("share of the client's samples, %", fontsize=style.SMALL, labelpad=4)
    bar.ax.xaxis.set_ticks_position("top")
    bar.ax.xaxis.set_label_position("top")
    bar.ax.tick_params(labelsize=style.SMALL - 1, length=2, left=False, labelleft=False)
    bar.outline.set_edgecolor("#BBBBBB")
    bar.set_ticks([0, 5, 10, 25, 50, 100])
    for axes in grid[0, 1:]:
        axes.remove()
    for axes, (_, label, values, colour) in zip(grid[1, 1:], strips, strict=True):
        _strip(axes, values[order], edges, label, colour)
    style.save(figure, path)


def _strips(info: RunInfo) -> list[tuple[str, str, np.ndarray, str]]:
    """Return (word in the title, label, values, colour) of each panel of bars.

    There is none for what no client has.
    """
    found = [
        ("samples", "samples, training\nand validation", info.class_counts.sum(axis=1).astype(float), style.GREY),
        ("label noise", "wrong labels, %\n(expected)", 100 * info.noise_rate, style.VERMILLION),
        ("speed", "a full job,\nvirtual s (expected)", info.expected_s, style.BLUE),
    ]
    return [strip for strip in found if np.nan_to_num(strip[2]).any()]


def by_class(class_counts: np.ndarray) -> Ids:
    """Clients ordered by their most frequent class, those most concentrated on it first."""
    shares = population.shares(class_counts)
    return np.lexsort((-shares.max(axis=1), shares.argmax(axis=1))).astype(np.int64)


def group_means(rows: np.ndarray, edges: Ids) -> Float64[np.ndarray, "..."]:
    """The mean of each group of neighbouring rows."""
    sizes = np.diff(np.append(edges, len(rows)))
    sums = np.add.reduceat(rows.astype(np.float64), edges, axis=0)
    means: np.ndarray = (sums.T / sizes).T
    return means


def row_words(count: int, rows: int) -> str:
    """The label of the clients' axis."""
    if rows == count:
        return "client"
    return f"clients, sorted by most frequent class (about {count / rows:.0f} in each row)"


def _heat_map(axes: "Axes", shares: np.ndarray, edges: Ids) -> "AxesImage":
    from matplotlib.colors import PowerNorm

    count, n_classes = shares.shape
    image = axes.imshow(
        100 * group_means(shares, edges),
        aspect="auto",
        interpolation="nearest",
        cmap=style.ramp(),
        norm=PowerNorm(0.5, 0, 100),  # a tenth of the samples differs visibly from none and from all
        extent=(-0.5, n_classes - 0.5, count - 0.5, -0.5),
    )
    axes.set_xlabel("class")
    axes.set_ylabel(row_words(count, len(edges)))
    style.separate(axes, len(edges), n_classes)
    style.tidy(axes, grid=False)
    style.whole_numbers(axes.xaxis, 12)
    style.whole_numbers(axes.yaxis, 10)
    return image


def _strip(axes: "Axes", values: np.ndarray, edges: Ids, label: str, colour: str) -> None:
    """Bars on the clients' axis."""
    count = len(values)
    sizes = np.diff(np.append(edges, count))
    means = group_means(np.nan_to_num(values, nan=0.0, posinf=0.0), edges)
    gap = 0.8 if count <= 120 else 1.0
    axes.barh(edges + sizes / 2 - 0.5, means, height=sizes * gap, color=colour, linewidth=0)
    axes.set_xlabel(label)
    middle, most = float(np.median(means)), float(means.max())
    if means.min() > 0 and most > SPREAD * middle:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, most * 1.05 if most > 0 else 1)
    style.tidy(axes)
    axes.tick_params(labelleft=False, left=False)
