"""accuracy.png: accuracy and loss, by round and by virtual time."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.callback.base import RunInfo
from fedcohort.callback.figure import style
from fedcohort.callback.history import History

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MARKED = 30  # points up to which each gets a dot
LINES = {  # panel -> (metric, label, colour, line style)
    "accuracy": (
        ("test/acc", "server's test set", style.BLUE, "-"),
        ("clients/acc_mean", "clients' own test shards, mean", style.ORANGE, "-"),
    ),
    "loss": (
        ("test/loss", "server's test set", style.BLUE, "-"),
        ("server_val/loss", "server's validation set", style.GREEN, "--"),
    ),
}
BAND = ("clients/acc_worst5", "clients/acc_best5", "clients, worst 5 % to best 5 %")


def draw(info: RunInfo, history: History, path: Path) -> bool:
    """Draw it; False where nothing was evaluated."""
    metrics = history.metrics
    if not any(name in metrics for lines in LINES.values() for name, *_ in lines):
        return False
    figure = style.figure(info, "Accuracy and loss", 10, 6.4)
    grid = figure.subplots(2, 2, sharey="row", sharex="col")
    time = metrics.get("time/virtual_s")
    size, unit = style.virtual_unit([] if time is None else time.tolist())
    for row, panel in enumerate(LINES):
        _lines(grid[row, 0], metrics, panel, np.asarray(history.steps, dtype=float))
        if time is None or not (time > 0).any():
            grid[row, 1].set_visible(False)
        else:
            _lines(grid[row, 1], metrics, panel, time.to_numpy() / size)
        grid[row, 0].set_ylabel("accuracy, %" if panel == "accuracy" else "cross-entropy, nats")
    _mark_best(grid[0, 0], metrics, np.asarray(history.steps, dtype=float))
    style.whole_numbers(grid[1, 0])
    grid[1, 0].set_xlabel("communication round")
    grid[1, 1].set_xlabel(f"virtual time, {unit}")
    _legend(figure, grid)
    style.save(figure, path)
    return True


def _lines(axes: "Axes", metrics: "pd.DataFrame", panel: str, x: np.ndarray) -> None:
    scale = 100.0 if panel == "accuracy" else 1.0
    if panel == "accuracy" and BAND[0] in metrics and BAND[1] in metrics:
        seen = metrics[BAND[0]].notna().to_numpy()
        low, high = (metrics[name].to_numpy()[seen] * scale for name in BAND[:2])
        axes.fill_between(x[seen], low, high, color=style.ORANGE, alpha=0.16, linewidth=0, label=BAND[2])
    for name, label, colour, dash in LINES[panel]:
        if name in metrics and metrics[name].notna().any():
            seen = np.isfinite(metrics[name].to_numpy())  # rounds without an evaluation leave no gap
            dots = "o" if seen.sum() <= MARKED else ""
            values = metrics[name].to_numpy()[seen] * scale
            axes.plot(x[seen], values, dash, marker=dots, markersize=3.5, linewidth=1.7, color=colour, label=label)
    style.tidy(axes)


def _mark_best(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray) -> None:
    """A star at the first round with the highest test accuracy: what stopping early would have reported."""
    if "test/acc" not in metrics or metrics["test/acc"].isna().all():
        return
    values = 100 * metrics["test/acc"].to_numpy()
    at = int(np.nanargmax(values))
    axes.plot(x[at], values[at], "*", markersize=13, color=style.VERMILLION, markeredgecolor="white", zorder=5)
    left = x[at] > (x[0] + x[-1]) / 2
    axes.annotate(
        f"best {values[at]:.1f} % at round {x[at]:.0f}",
        (x[at], values[at]),
        xytext=(-8 if left else 8, -26),
        textcoords="offset points",
        ha="right" if left else "left",
        fontsize=style.SMALL,
        color=style.VERMILLION,
    )


def _legend(figure: "object", grid: np.ndarray) -> None:
    for axes, place in ((grid[0, 0], "lower right"), (grid[1, 0], "upper right")):
        axes.legend(loc=place, fontsize=style.SMALL, frameon=True, framealpha=0.85, edgecolor="none")
