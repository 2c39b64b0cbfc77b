"""accuracy.png: accuracy and loss by round, and by virtual time if rounds differ in length."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from fedcohort import units
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = 300  # points above which a moving mean is drawn
EQUAL = 0.05  # share of an axis up to which two curves look equal
BOLD, THIN = 1.7, 1.0
LINES = {  # panel -> (metric, label, colour, line style, width)
    "accuracy": (
        ("test/acc", "server's test set", style.BLUE, "-", BOLD),
        ("clients/acc_mean", "clients' test sets, mean", style.ORANGE, "--", BOLD),
        ("server_val/acc", "server's validation set", style.GREEN, "--", THIN),
    ),
    "loss": (
        ("test/loss", "server's test set", style.BLUE, "-", BOLD),
        ("server_val/loss", "server's validation set", style.GREEN, "--", THIN),
    ),
}
MEAN, MEAN_EQUAL = "clients/acc_mean", 0.01  # difference to the server's accuracy up to which it is not drawn
BAND = ("clients/acc_worst5", "clients/acc_best5", "clients, worst 5 % to best 5 %")


def draw(info: RunInfo, history: History) -> "Figure | None":
    """Return the figure; None if nothing was evaluated."""
    metrics = history.metrics
    if not any(name in metrics for lines in LINES.values() for name, *_ in lines):
        return None
    window = smoothing(metrics)
    mean = f" (means of {window} rounds; pale: as measured)" if window > 1 else ""
    steps = np.asarray(history.steps, dtype=float)
    time = metrics["time/virtual_s"].to_numpy() if "time/virtual_s" in metrics else np.zeros(len(steps))
    has_time_axis = not is_even(time, steps)
    columns = 2 if has_time_axis else 1
    figure = style.figure(info, f"Accuracy and loss{mean}", 10 if has_time_axis else 7.5, 6.9)
    grid = figure.subplots(2, columns, sharey="row", sharex="col", squeeze=False)
    _draw_column(grid[:, 0], metrics, steps)
    style.count_rounds(grid[1, 0])
    if has_time_axis:
        size, unit = style.virtual_unit(time.tolist())
        _draw_column(grid[:, 1], metrics, time / size)
        grid[1, 1].set_xlabel(f"virtual time, {unit}")
    else:
        seconds = float(time[-1] / steps[-1]) if len(steps) and steps[-1] > 0 else 0.0
        pace = f"about {units.seconds(seconds)} of virtual time each" if seconds > 0 else "without virtual time"
        grid[1, 0].set_xlabel(f"communication round, {pace}")
    grid[0, 0].set_ylabel("accuracy, %" + ("\n(clients' mean: equal)" if _is_mean_equal(metrics) else ""))
    grid[1, 0].set_ylabel("cross-entropy, nats")
    style.legend(figure, columns + 1)
    return figure


def is_even(time: np.ndarray, steps: np.ndarray) -> bool:
    """Return whether curves by virtual time look like those by round: no time passes, or rounds take equal time."""
    if not len(steps) or steps[-1] <= 0 or not time[-1] > 0:
        return True
    return bool(np.abs(time / time[-1] - steps / steps[-1]).max() < EQUAL)


def _draw_column(column: np.ndarray, metrics: "pd.DataFrame", x: np.ndarray) -> None:
    for axes, lines in zip(column, LINES.values(), strict=True):
        for name, label, colour, dash, width in lines:
            if name != MEAN or not _is_mean_equal(metrics):
                _draw_line(axes, metrics, x, name, width, label=label, color=colour, linestyle=dash)
        style.tidy(axes)
    _draw_band(column[0], metrics, x)
    _mark_best(column[0], metrics, x)


def _is_mean_equal(metrics: "pd.DataFrame") -> bool:
    """Return whether the clients' mean accuracy equals the server's, because its test set consists of equal shards."""
    if not {MEAN, "test/acc"} <= set(metrics.columns):
        return False
    gap = (metrics[MEAN] - metrics["test/acc"]).abs()
    return bool(gap.notna().any() and gap.max() < MEAN_EQUAL)


def _is_measured(metrics: "pd.DataFrame", name: str) -> np.ndarray:
    """Return which rounds measured the metric; the others leave no gap in a line."""
    if name not in metrics:
        return np.zeros(len(metrics), dtype=bool)
    finite: np.ndarray = np.isfinite(metrics[name].to_numpy())
    return finite


def _draw_line(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray, name: str, width: float, **look: Any) -> None:  # noqa: ANN401
    measured = _is_measured(metrics, name)
    if not measured.any():
        return
    values = metrics[name].to_numpy()[measured] * (1 if name.endswith("loss") else 100)
    if (window := smoothing(metrics)) > 1:
        if width == BOLD:
            axes.plot(x[measured], values, color=look["color"], linewidth=0.6, alpha=0.35)
        values = moving_mean(metrics.index.to_numpy()[measured], values, window)
    style.line(axes, x[measured], values, width, **look)


def smoothing(metrics: "pd.DataFrame") -> int:
    """Return the window of the moving mean, in rounds; 1 if the points themselves are readable."""
    names = [name for lines in LINES.values() for name, *_ in lines]
    points = max(int(_is_measured(metrics, name).sum()) for name in names)
    return 1 if points <= LONG else 2 * (len(metrics) // 100) + 1


def moving_mean(steps: np.ndarray, values: np.ndarray, window: int) -> Float64[np.ndarray, "_n"]:
    """Return the mean of the values in the `window` rounds around each round, over measured rounds only.

    Args:
        steps: rounds of the values, ascending.
        values: one for each round.
        window: odd number of rounds.
    """
    first = np.searchsorted(steps, steps - window // 2, side="left")
    end = np.searchsorted(steps, steps + window // 2, side="right")
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    means: np.ndarray = (sums[end] - sums[first]) / (end - first)
    return means


def _draw_band(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray) -> None:
    measured = _is_measured(metrics, BAND[0]) & _is_measured(metrics, BAND[1])
    if measured.any():
        steps, window = metrics.index.to_numpy()[measured], smoothing(metrics)
        low, high = (moving_mean(steps, 100 * metrics[name].to_numpy()[measured], window) for name in BAND[:2])
        axes.fill_between(x[measured], low, high, color=style.ORANGE, alpha=0.16, linewidth=0, label=BAND[2])


def _mark_best(axes: "Axes", metrics: "pd.DataFrame", x: np.ndarray) -> None:
    """Draw a star at the first round with the highest test accuracy, the result of early stopping."""
    if not _is_measured(metrics, "test/acc").any():
        return
    values = 100 * metrics["test/acc"].to_numpy()
    best = int(np.nanargmax(values))
    label = f"best so far: {values[best]:.1f} % at round {metrics.index[best]}"
    look: dict[str, Any] = {"markersize": 13, "color": style.VERMILLION, "markeredgecolor": "white"}
    axes.plot(x[best], values[best], "*", linestyle="none", zorder=5, label=label, **look)
