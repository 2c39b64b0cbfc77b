"""accuracy.png: accuracy and loss, by round, and by virtual time where that says more."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from jaxtyping import Float64

from fedcohort import units
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LONG = 300
ALIKE = 0.05  # of an axis, up to which two curves are one to the eye
MARKED = 30  # points up to which each gets a dot
BOLD, THIN = 1.7, 1.0
LINES = {  # panel -> (metric, label, colour, line style, width)
    "accuracy": (
        ("test/acc", "server's test set", style.BLUE, "-", BOLD),
        ("clients/acc_mean", "clients' own test shards, mean", style.ORANGE, "--", BOLD),
        ("server_val/acc", "server's validation set", style.GREEN, "--", THIN),
    ),
    "loss": (
        ("test/loss", "server's test set", style.BLUE, "-", BOLD),
        ("server_val/loss", "server's validation set", style.GREEN, "--", THIN),
    ),
}
MEAN, SAME = "clients/acc_mean", 0.01  # of accuracy, up to which it isn't drawn over the server's
BAND = ("clients/acc_worst5", "clients/acc_best5", "clients, worst 5 % to best 5 %")


def draw(info: RunInfo, history: History, path: Path) -> bool:
    """Draw it; False where nothing was evaluated."""
    metrics = history.metrics
    if not any(name in metrics for lines in LINES.values() for name, *_ in lines):
        return False
    window = smoothing(metrics)
    mean = f" (means of {window} rounds; pale: as measured)" if window > 1 else ""
    steps = np.asarray(history.steps, dtype=float)
    time = metrics["time/virtual_s"].to_numpy() if "time/virtual_s" in metrics else np.zeros(len(steps))
    both = not is_even(time, steps)
    figure = style.figure(info, f"Accuracy and loss{mean}", 10 if both else 7.5, 6.9)
    grid = figure.subplots(2, 2 if both else 1, sharey="row", sharex="col", squeeze=False)
    size, unit = style.virtual_unit(time.tolist())
    _column(grid[:, 0], metrics, steps)
    style.whole_numbers(grid[1, 0].xaxis)
    each = float(time[-1] / steps[-1]) if len(steps) and steps[-1] > 0 else 0.0
    pace = f", each about {units.seconds(each)} of virtual time" if each > 0 else ", which take no virtual time"
    grid[1, 0].set_xlabel("communication round" if both else f"communication round{pace}")
    same = "\n(clients' mean: the same)" if _is_doubled(metrics) else ""
    grid[0, 0].set_ylabel(f"accuracy, %{same}")
    grid[1, 0].set_ylabel("cross-entropy, nats")
    if both:
        _column(grid[:, 1], metrics, time / size)
        grid[1, 1].set_xlabel(f"virtual time, {unit}")
    style.legend(figure, _handles(grid[:, 0]), 3 if both else 2)
    style.save(figure, path)
    return True


def is_even(time: np.ndarray, steps: np.ndarray) -> bool:
    """Whether the curves by virtual time would be those by round again: no time passes, or rounds are about alike."""
    if not len(steps) or steps[-1] <= 0 or not time[-1] > 0:
        return True
    return bool(np.abs(time / time[-1] - steps / steps[-1]).max() < ALIKE)


def _column(column: np.ndarray, metrics: "pd.DataFrame", x: np.ndarray) -> None:
    for axes, panel in zip(column, LINES, strict=True):
        for name, label, colour, dash, width in LINES[panel]:
            if name == MEAN and _is_doubled(metrics):
                continue
            _line(axes, metrics, x, name, label=label, color=colour, linestyle=dash, linewidth=width)
        if panel == "accuracy":
            _band(axes, metrics, x)
        style.tidy(axes)
    _mark_best(column[0], metrics, x)


def _is_doubled(metrics: "pd.DataFrame") -> bool:
    """Whether the clients' mean is the server's accuracy, as where equal shards make up the server's test set."""
    if not {MEAN, "test/acc"} <= set(metrics.columns):
        return False
    gap = (metrics[MEAN] - metrics["test/acc"]).abs()
    return bool(gap.notna().any() and gap.max() < SAME)


def _drop_unmeasured(metrics: "pd.DataFrame", name: str) -> np.ndarray:
    """Return which rounds measured the metric: those that did not leave no gap in a line."""
    if name not in metrics:
        return np.zeros(len(metrics), dtype=bool)
    finite: np.ndarray = np.isfinite(metrics[name].to_numpy())
    return finite


class Look(TypedDict):
    """Of a line, as matplotlib calls it."""

    label: str
    color: str
    linestyle: str
    linewidth: float


def _line(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray, name: str, **look: Unpack[Look]) -> None:
    measured = _drop_unmeasured(metrics, name)
    if not measured.any():
        return
    values = metrics[name].to_numpy()[measured] * (1 if name.endswith("loss") else 100)
    if (window := smoothing(metrics)) > 1:
        if look["linewidth"] == BOLD:
            axes.plot(x[measured], values, color=look["color"], linewidth=0.6, alpha=0.35)
        values = moving_mean(metrics.index.to_numpy()[measured], values, window)
    dots = "o" if len(values) <= MARKED else ""
    axes.plot(x[measured], values, marker=dots, markersize=2 * look["linewidth"], **look)


def smoothing(metrics: "pd.DataFrame") -> int:
    """Rounds in the moving mean that is drawn over a long run's jitter; 1 where the points themselves are readable."""
    drawn = [name for lines in LINES.values() for name, *_ in lines]
    points = max(int(_drop_unmeasured(metrics, name).sum()) for name in drawn)
    return 1 if points <= LONG else 2 * (len(metrics) // 100) + 1


def moving_mean(steps: np.ndarray, values: np.ndarray, window: int) -> Float64[np.ndarray, "_n"]:
    """The mean of the values of the `window` rounds (odd) around each; rounds that measured none have no part in it.

    steps: the rounds of the values, ascending.
    """
    first = np.searchsorted(steps, steps - window // 2, side="left")
    end = np.searchsorted(steps, steps + window // 2, side="right")
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    means: np.ndarray = (sums[end] - sums[first]) / (end - first)
    return means


def _band(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray) -> None:
    measured = _drop_unmeasured(metrics, BAND[0]) & _drop_unmeasured(metrics, BAND[1])
    if measured.any():
        steps, window = metrics.index.to_numpy()[measured], smoothing(metrics)
        low, high = (moving_mean(steps, 100 * metrics[name].to_numpy()[measured], window) for name in BAND[:2])
        axes.fill_between(x[measured], low, high, color=style.ORANGE, alpha=0.16, linewidth=0, label=BAND[2])


def _mark_best(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray) -> None:
    """A star at the first round with the highest test accuracy: what stopping early would have reported."""
    if not _drop_unmeasured(metrics, "test/acc").any():
        return
    values = 100 * metrics["test/acc"].to_numpy()
    at = int(np.nanargmax(values))
    label = f"best so far: {values[at]:.1f} % at round {metrics.index[at]}"
    look = {"markersize": 13, "color": style.VERMILLION, "markeredgecolor": "white", "linestyle": "none"}
    axes.plot(x[at], values[at], "*", zorder=5, label=label, **look)  # type: ignore[arg-type]


def _handles(column: "Iterable[Axes]") -> "list[Artist]":
    """Return one handle for each label, in the order of the panels."""
    found: dict[str, Artist] = {}
    for axes in column:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return list(found.values())
