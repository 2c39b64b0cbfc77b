"""partition.png: who holds which classes, how much of it, how noisy its labels are, and how slow it is."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.callback import population
from fedcohort.callback.base import RunInfo
from fedcohort.callback.figure import style
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 50.0  # largest over median from which a strip is logarithmic


def draw(info: RunInfo, path: Path) -> None:
    """Draw it. A population of more than 400 is sorted by class and shown in groups of neighbours."""
    count, n_classes = info.class_counts.shape
    order = by_class(info.class_counts) if count > style.MANY else np.arange(count)
    edges = style.bins(count)
    height = float(np.clip(1.6 + 0.1 * count, 3.6, 7.5))
    figure = style.figure(info, "Partition: classes, samples, label noise and speed of each client", 11, height)
    panels = figure.subplots(1, 4, sharey=True, width_ratios=[5, 1.3, 1.3, 1.3])
    shares = grouped(population.shares(info.class_counts)[order], edges)
    image = panels[0].imshow(
        100 * shares, aspect="auto", interpolation="nearest", cmap="cividis", extent=(-0.5, n_classes - 0.5, count, 0)
    )
    bar = figure.colorbar(image, ax=panels[0], pad=0.02, fraction=0.05)
    bar.set_label("share of the client's samples, %", fontsize=style.SMALL)
    bar.ax.tick_params(labelsize=style.SMALL)
    bar.outline.set_visible(False)
    panels[0].set_xlabel("class")
    panels[0].set_ylabel(row_words(count, len(edges)))
    style.tidy(panels[0], grid=False)
    style.whole_numbers(panels[0], y=True)
    samples = info.class_counts.sum(axis=1).astype(float)
    _strip(panels[1], samples[order], edges, count, "samples", style.GREY)
    _strip(panels[2], 100 * info.noise_rate[order], edges, count, "wrong labels, %", style.VERMILLION)
    _strip(panels[3], info.expected_s[order], edges, count, "expected time\nof a full job, virtual s", style.BLUE)
    style.save(figure, path)


def by_class(class_counts: np.ndarray) -> Ids:
    """Clients ordered by their most frequent class, those most concentrated on it first."""
    shares = population.shares(class_counts)
    return np.lexsort((-shares.max(axis=1), shares.argmax(axis=1))).astype(np.int64)


def grouped(rows: np.ndarray, edges: Ids) -> Float64[np.ndarray, "..."]:
    """The mean of each group of neighbouring rows."""
    sizes = np.diff(np.append(edges, len(rows)))
    sums = np.add.reduceat(rows.astype(np.float64), edges, axis=0)
    means: np.ndarray = (sums.T / sizes).T
    return means


def row_words(count: int, rows: int) -> str:
    """The label of the clients' axis."""
    if rows == count:
        return "client"
    return f"clients, sorted by most frequent class (each row: {count / rows:.0f})"


def _strip(axes: "Axes", values: np.ndarray, edges: Ids, count: int, label: str, colour: str) -> None:
    """Bars on the clients' axis."""
    heights = np.diff(np.append(edges, count))
    shown = grouped(np.nan_to_num(values, nan=0.0, posinf=0.0), edges)
    gap = 0.8 if len(edges) == count and count <= 120 else 1.0
    axes.barh(edges + heights / 2, shown, height=heights * gap, color=colour, linewidth=0)
    axes.set_xlabel(label)
    middle = float(np.median(shown))
    if middle > 0 and shown.max() > SPREAD * middle and shown.min() > 0:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, shown.max() * 1.05 if shown.max() > 0 else 1)
    style.tidy(axes)
    axes.tick_params(labelleft=False, left=False)
