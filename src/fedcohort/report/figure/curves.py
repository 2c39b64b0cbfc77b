"""accuracy.png and pace.png: accuracy and loss, and the length of rounds.

accuracy.png has accuracy and loss by round, and by virtual time if rounds differ in length. pace.png has the length of
each round, announced deadlines, and numbers of clients that arrived in time.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort import units
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.timeline import count_arrivals, list_timed_rounds, measure_round_lengths

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MAX_RAW_POINTS = 300  # points above which a moving mean is drawn
MAX_CURVE_DISTANCE = 0.05  # share of an axis up to which two curves look equal
THICK_LINE_WIDTH, THIN_LINE_WIDTH = 1.4, 0.9
LINES_BY_PANEL = {  # panel -> (metric, label, colour, line style, width)
    "accuracy": (
        ("test/acc", "server's test set", style.BLUE, "-", THICK_LINE_WIDTH),
        ("clients/acc_mean", "clients' test sets, mean", style.ORANGE, "--", THICK_LINE_WIDTH),
        ("server_val/acc", "server's validation set", style.GREEN, ":", THIN_LINE_WIDTH),
    ),
    "loss": (
        ("test/loss", "server's test set", style.BLUE, "-", THICK_LINE_WIDTH),
        ("server_val/loss", "server's validation set", style.GREEN, ":", THIN_LINE_WIDTH),
    ),
}
CLIENT_BAND_METRICS = ("clients/acc_worst5", "clients/acc_best5", "clients, worst 5 % to best 5 %")
ARRIVAL_COUNTS = (  # column of `arrivals`, colour, hatch and label, from below
    ("complete", style.BLUE, "", "arrived"),
    ("partial", style.ORANGE, style.HATCH_PATTERN, "arrived with part of the work"),
    ("late", style.VERMILLION, "xxx", "too late or lost"),
)
MIN_VISIBLE_SHARE = 0.01  # share of a round from which time before its broadcast is drawn


def draw_accuracy(info: RunInfo, history: History) -> "Figure | None":
    """Draw accuracy and loss by round and by virtual time; return None if no round was evaluated.

    Args:
        info: the run.
        history: metrics of the run's rounds.
    """
    metrics = history.metrics
    if not any(name in metrics for panel_lines in LINES_BY_PANEL.values() for name, *_ in panel_lines):
        return None
    window_rounds = choose_window_rounds(metrics)
    title_hint = f" (means of {window_rounds} rounds; pale: as measured)" if window_rounds > 1 else ""
    steps = metrics.index.to_series().astype(float)
    virtual_s = metrics.get("time/virtual_s", 0 * steps)
    has_time_axis = not rounds_are_equal(virtual_s.to_numpy(), steps.to_numpy())
    n_columns = 2 if has_time_axis else 1
    figure = style.make_run_figure(
        info, f"Accuracy and loss{title_hint}", style.PAGE_WIDTH if has_time_axis else style.COLUMN_WIDTH, 4.0
    )
    panel_grid = figure.subplots(2, n_columns, sharey="row", sharex="col", squeeze=False)
    _draw_panel_column(panel_grid[:, 0], metrics, steps, window_rounds)
    style.label_rounds_axis(panel_grid[1, 0])
    if has_time_axis:
        unit_s, unit_name = style.choose_time_unit(virtual_s.tolist())
        _draw_panel_column(panel_grid[:, 1], metrics, virtual_s / unit_s, window_rounds)
        panel_grid[1, 1].set_xlabel(f"virtual time, {unit_name}")
    else:
        s_per_round = float(virtual_s.iloc[-1] / steps.iloc[-1]) if len(steps) and steps.iloc[-1] > 0 else 0.0
        round_length_text = (
            f"about {units.format_seconds(s_per_round)} of virtual time each"
            if s_per_round > 0
            else "without virtual time"
        )
        panel_grid[1, 0].set_xlabel(f"communication round\n({round_length_text})")
    panel_grid[0, 0].set_ylabel("accuracy, %")
    panel_grid[1, 0].set_ylabel("cross-entropy, nats")
    style.add_legend(figure)
    return figure


def rounds_are_equal(virtual_s: np.ndarray, steps: np.ndarray) -> bool:
    """Return whether curves by virtual time look like those by round: no time passes, or rounds take equal time.

    Args:
        virtual_s: virtual seconds at each evaluation, ascending, [n].
        steps: round of each evaluation, [n].
    """
    if not len(steps) or steps[-1] <= 0 or not virtual_s[-1] > 0:
        return True
    return bool(np.abs(virtual_s / virtual_s[-1] - steps / steps[-1]).max() < MAX_CURVE_DISTANCE)


def _draw_panel_column(column: np.ndarray, metrics: "pd.DataFrame", x: "pd.Series[float]", window_rounds: int) -> None:
    """Draw accuracy and loss, a band from the worst to the best 5 % of the clients, and a star at the best accuracy.

    Args:
        column: panels of accuracy and loss, [2].
        metrics: values by round (index) and metric (column).
        x: position of each round on the horizontal axis.
        window_rounds: width of the moving mean in rounds.
    """
    for axes, panel_lines in zip(column, LINES_BY_PANEL.values(), strict=True):
        for metric, line_label, colour, line_style, line_width in panel_lines:
            metric_series = list_measured_values(metrics, metric)
            if window_rounds > 1 and line_width == THICK_LINE_WIDTH:
                axes.plot(x[metric_series.index], metric_series, color=colour, linewidth=0.6, alpha=0.35)
            if len(metric_series):
                line_options = {"label": line_label, "color": colour, "linestyle": line_style}
                style.draw_line(
                    axes,
                    x[metric_series.index],
                    smooth_values(metric_series, window_rounds),
                    line_width,
                    **line_options,
                )
        style.format_axes(axes)
    low, high = (list_measured_values(metrics, metric) for metric in CLIENT_BAND_METRICS[:2])
    rounds = low.index.intersection(high.index)
    if len(rounds):
        low, high = (smooth_values(metric_series[rounds], window_rounds) for metric_series in (low, high))
        column[0].fill_between(
            x[rounds], low, high, color=style.ORANGE, alpha=0.16, linewidth=0, label=CLIENT_BAND_METRICS[2]
        )
    accuracy = list_measured_values(metrics, "test/acc")
    if len(accuracy):
        best_round = int(accuracy.index.to_numpy()[accuracy.to_numpy().argmax()])  # the first round with the highest
        line_label = f"best so far: {accuracy[best_round]:.1f} % at round {best_round}"
        marker: dict[str, Any] = {"markersize": 9, "color": style.VERMILLION, "markeredgecolor": "white", "zorder": 5}
        column[0].plot(x[best_round], accuracy[best_round], "*", linestyle="none", label=line_label, **marker)


def list_measured_values(metrics: "pd.DataFrame", metric: str) -> "pd.Series[float]":
    """Return the finite values of the metric `metric` in `metrics` by round; empty if it was not measured.

    Accuracies are in per cent. `metrics` has rounds as index and metrics as columns.
    """
    import pandas as pd

    metric_values: pd.Series[float] = metrics.get(metric, pd.Series(dtype=float))
    return metric_values[np.isfinite(metric_values)] * (1 if metric.endswith("loss") else 100)


def choose_window_rounds(metrics: "pd.DataFrame") -> int:
    """Return over how many rounds curves are averaged: 1 (not at all) for 300 evaluations or fewer, otherwise more.

    `metrics` has rounds as index and metrics as columns.
    """
    n_points = max(len(list_measured_values(metrics, name)) for lines in LINES_BY_PANEL.values() for name, *_ in lines)
    return 1 if n_points <= MAX_RAW_POINTS else 2 * (len(metrics) // 100) + 1


def smooth_values(values: "pd.Series[float]", window_rounds: int) -> "pd.Series[float]":
    """Return the mean of the measured values in the `window_rounds` rounds around each round.

    Args:
        values: measured values, indexed by round in ascending order.
        window_rounds: odd number of rounds.
    """
    rounds = range(values.index[0], values.index[-1] + 1)
    return values.reindex(rounds).rolling(window_rounds, center=True, min_periods=1).mean()[values.index]


def draw_round_lengths(info: RunInfo, history: History) -> "Figure | None":
    """Draw the virtual length of each round and its arrivals; return None if no virtual time passed.

    Args:
        info: the run.
        history: metrics of the run's rounds.
    """
    if not list_timed_rounds(history):
        return None
    figure = style.make_run_figure(
        info, "Length of each round, and clients that arrived by its end", style.COLUMN_WIDTH, 3.3
    )
    upper_axes, arrival_axes = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    round_ends = history.metrics["round/closed_s"].dropna()
    round_lengths = measure_round_lengths(history).reindex(round_ends.index)
    deadlines = history.metrics.get("round/announced_s", round_ends.iloc[:0]).dropna()
    unit_s, unit_name = style.choose_time_unit(
        [*round_lengths.dropna().tolist(), *round_ends.tolist(), *deadlines.tolist()]
    )
    if (round_lengths > (1 + MIN_VISIBLE_SHARE) * round_ends).any():
        line_style: dict[str, Any] = {"color": style.GREY, "label": "with queries and waits", "marker": ""}
        style.draw_line(upper_axes, round_lengths.index, round_lengths / unit_s, 1.0, **line_style)
    style.draw_line(upper_axes, round_ends.index, round_ends / unit_s, color=style.BLUE, label="round closed")
    if len(deadlines):
        line_style = {"color": style.VERMILLION, "linestyle": "--", "label": "announced deadline"}
        style.draw_line(upper_axes, deadlines.index, deadlines / unit_s, marker="", **line_style)
    upper_axes.set_ylim(0, 1.08 * max(upper_axes.dataLim.y1, 1e-12))
    upper_axes.set_ylabel(f"virtual time\nof a round, {unit_name}")
    style.format_axes(upper_axes)
    arrival_counts = count_arrivals(history)
    bar_edges = np.append(arrival_counts.index.to_numpy() - 0.5, arrival_counts.index[-1] + 0.5)
    lower_edge = np.zeros(len(arrival_counts))
    for column, colour, hatch, count_label in ARRIVAL_COUNTS:
        upper_edge = lower_edge + arrival_counts[column].to_numpy()
        if (upper_edge > lower_edge).any():
            bar_style: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
            arrival_axes.stairs(upper_edge, bar_edges, baseline=lower_edge, fill=True, label=count_label, **bar_style)
        lower_edge = upper_edge
    arrival_axes.set_ylabel("clients")
    arrival_axes.set_ylim(bottom=0)
    style.format_axes(arrival_axes)
    style.use_integer_ticks(arrival_axes.yaxis, 4)
    style.label_rounds_axis(arrival_axes)
    arrival_axes.set_xlim(0.5, max(history.steps) + 0.5)
    style.add_legend(figure)
    return figure
