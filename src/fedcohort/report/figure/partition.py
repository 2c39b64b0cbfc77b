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

TRAIT_SHOWN_IN_MAP = "class imbalance"  # visible in the map of classes
MAX_NAMED_CLASSES = 12  # with more, the names of classes would overlap
MAX_CLASS_NAME_LENGTH = 18
MIN_LOG_SCALE_RATIO = 20.0  # ratio of the largest to the median value from which a strip is logarithmic


def draw_partition(info: RunInfo) -> "Figure":
    """Return the figure of the classes and properties of the clients in the run `info`.

    More than 400 clients are shown in groups of neighbouring rows.
    """
    n_clients, client_traits = len(info.class_counts), population.list_traits(info)
    client_order, sort_property = sort_clients(info)
    starts = style.find_group_starts(n_clients)
    strip_traits = [trait for trait in client_traits if trait.has_spread and trait.name != TRAIT_SHOWN_IN_MAP]
    class_names = shorten_class_names(info)
    height = float(np.clip(1.8 + 0.08 * n_clients, 3.0, 6.5))
    height += max(map(len, class_names), default=0) * style.LETTER_RATIO * style.FONT_SIZE / 72  # names are upright
    *other_panels, last_panel = ["classes", *(trait.name for trait in strip_traits)]
    title = f"Partition: {', '.join(other_panels)}{' and ' if other_panels else ''}{last_panel} of each client"
    figure = style.make_run_figure(
        info, title, style.COLUMN_WIDTH if len(strip_traits) <= 1 else style.PAGE_WIDTH, height
    )
    if uniform_text := "; ".join(
        trait.uniform_text for trait in client_traits if trait.uniform_text and not trait.has_spread
    ):
        wrapped_text = style.wrap_text(f"equal for all clients: {uniform_text}", figure.get_figwidth() - 0.1)
        figure.supxlabel(wrapped_text, x=0.01, ha="left", fontsize=style.FONT_SIZE, color="#555555")
    panel_widths = [2.6] + [1.4] * len(strip_traits)
    panel_axes = figure.subplots(1, len(panel_widths), sharey=True, squeeze=False, width_ratios=panel_widths)[0]
    label = f", sorted by {sort_property}" if sort_property else ""
    label = (
        f"client{label}"
        if len(starts) == n_clients
        else f"clients{label} (about {n_clients / len(starts):.0f} in each row)"
    )
    class_map = _draw_class_map(panel_axes[0], population.class_shares(info.class_counts)[client_order], starts, label)
    style.label_client_rows(panel_axes[0], client_order, sorted_by_id=not sort_property)
    if class_names:
        panel_axes[0].set_xticks(range(len(class_names)), class_names, rotation=90)
    colour_bar = figure.colorbar(class_map, ax=panel_axes[0], location="top", aspect=30, ticks=[0, 5, 10, 25, 50, 100])
    colour_bar.set_label("share of the client's samples, %", fontsize=style.FONT_SIZE)
    colour_bar.ax.tick_params(labelsize=style.FONT_SIZE, length=2)
    for axes, trait in zip(panel_axes[1:], strip_traits, strict=True):
        draw_strip(axes, trait.client_values[client_order], starts, trait.axis_label)
    return figure


def shorten_class_names(info: RunInfo) -> list[str]:
    """Return a short name for each class of the run `info`; [] without names or without room for them."""
    n_classes = info.class_counts.shape[1]
    if not info.labels or n_classes > MAX_NAMED_CLASSES:
        return []
    names = [info.labels.get(str(c), str(c)) for c in range(n_classes)]
    return [name if len(name) <= MAX_CLASS_NAME_LENGTH else f"{name[: MAX_CLASS_NAME_LENGTH - 1]}…" for name in names]


def sort_clients(info: RunInfo) -> tuple[Ids, str]:
    """Return the ids of clients in descending order of the first property in which they differ, and its name.

    Clients without differences are in the order of their ids, or by class if they are too many for separate rows. The
    name is "" for ids. `info` is the run.
    """
    trait = population.find_main_trait(info)
    if trait is not None:
        return np.argsort(-trait.client_values, kind="stable").astype(np.int64), trait.name
    n = len(info.class_counts)
    return (sort_by_class(info.class_counts), "most frequent class") if n > style.MAX_MAP_ROWS else (np.arange(n), "")


def sort_by_class(class_counts: np.ndarray) -> Ids:
    """Return the ids of clients ordered by their most frequent class, those with its largest shares first.

    Args:
        class_counts: samples by client and class, [clients, classes].
    """
    class_shares = population.class_shares(class_counts)
    return np.lexsort((-class_shares.max(axis=1), class_shares.argmax(axis=1))).astype(np.int64)


def average_groups(row_values: np.ndarray, row_starts: Ids) -> Float64[np.ndarray, "..."]:
    """Return the mean of each group of neighbouring rows, [groups, ...].

    Args:
        row_values: values by row, [rows, ...].
        row_starts: first row of each group, [groups].
    """
    group_sizes = np.diff(np.append(row_starts, len(row_values)))
    return np.asarray((np.add.reduceat(row_values.astype(np.float64), row_starts, axis=0).T / group_sizes).T)


def _draw_class_map(axes: "Axes", class_shares: np.ndarray, starts: Ids, axis_label: str) -> "AxesImage":
    from matplotlib.colors import PowerNorm

    n_clients, n_classes = class_shares.shape
    image_options = {"extent": (-0.5, n_classes - 0.5, n_clients - 0.5, -0.5), "cmap": "Blues"}
    colour_scale = PowerNorm(0.5, 0, 100)  # a tenth of the samples differs visibly from none and from all
    image = style.draw_heat_map(axes, 100 * average_groups(class_shares, starts), norm=colour_scale, **image_options)
    axes.set_xlabel("class")
    axes.set_ylabel(axis_label)
    style.use_integer_ticks(axes.xaxis, 10)
    return image


def draw_strip(axes: "Axes", client_values: np.ndarray, starts: Ids, axis_label: str) -> None:
    """Draw one bar for each row of clients, next to a panel that names the rows.

    Args:
        axes: the panel.
        client_values: value of each client, in the order of the rows, [clients].
        starts: position of the first client of each row, [rows].
        axis_label: label of the horizontal axis.
    """
    n_clients = len(client_values)
    row_sizes = np.diff(np.append(starts, n_clients))
    row_means = average_groups(np.nan_to_num(client_values, nan=0.0, posinf=0.0), starts)
    height = row_sizes * (0.8 if n_clients <= 120 else 1)
    axes.barh(starts + row_sizes / 2 - 0.5, row_means, height=height, color=style.GREY, linewidth=0)
    axes.set_xlabel(style.wrap_text(axis_label, 0.95))
    median_row_mean, largest_row_mean = float(np.median(row_means)), float(row_means.max())
    if (
        row_means.min() > 0 and largest_row_mean > MIN_LOG_SCALE_RATIO * median_row_mean and largest_row_mean > 1
    ):  # shares stay linear
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, largest_row_mean * 1.05 if largest_row_mean > 0 else 1)
    style.format_axes(axes)
    axes.tick_params(labelleft=False, left=False)
