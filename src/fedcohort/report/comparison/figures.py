"""The figures of a comparison: differences with intervals, curves, and their differences to the baseline's curves."""

import math
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort import units
from fedcohort.report.comparison import mean_curves
from fedcohort.report.comparison.mean_curves import ROUNDS_AXIS, MeanCurve, describe_estimate
from fedcohort.report.comparison.tables import sort_cells
from fedcohort.report.figure import style
from fedcohort.report.figure.methods import STYLE_BY_SIGN, IntervalRow, draw_intervals
from fedcohort.results.compare import Cell, CellResult, RunsByCell, group_runs_by_cell
from fedcohort.results.difference import Mean
from fedcohort.results.matching.question import ComparisonAnswer
from fedcohort.results.method_names import METHOD_FOLDERS, METHOD_GROUPS, ORACLE_GROUP, describe_method, name_method
from fedcohort.results.metric import MetricUnit, find_metric_unit, label_metric
from fedcohort.results.verdict import sign_of_verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURE_NAMES = ("forest", "means", "differences", "curves")  # names of the files
LINE_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.PURPLE, style.SKY_BLUE, style.BLACK)


def draw_comparison(answer: ComparisonAnswer, folder: Path, *, curves: bool = True) -> list[Path]:
    """Draw the figures of a comparison in all formats and return the files.

    Args:
        answer: result of the comparison.
        folder: folder of the files.
        curves: whether to draw the figures with rounds or costs on the horizontal axis, too.
    """
    files = _draw_intervals(answer, folder)
    if not curves:
        return files
    runs = group_runs_by_cell(answer.frames, answer.headline.options)
    evaluated = {cell: {seed: run for seed, run in by_seed.items() if len(run.steps)} for cell, by_seed in runs.items()}
    runs_by_cell = {cell: by_seed for cell, by_seed in evaluated.items() if by_seed}
    return [*files, *_draw_differences(answer, runs_by_cell, folder), *_draw_curves(answer, runs_by_cell, folder)]


def _format_note(answer: ComparisonAnswer) -> str:
    """Return the second line of a figure of `answer`, such as "digits, 12 runs, 3 seeds per condition"."""
    dataset_names = sorted({run.params["dataset"] for run in answer.matching.runs if "dataset" in run.params})
    seed_counts = sorted({cell_result.mean.n for cell_result in answer.headline.results.values()})
    seeds = " to ".join(dict.fromkeys(map(str, (seed_counts[0], seed_counts[-1]))))
    seeds_text = "1 seed per condition: no intervals" if seeds == "1" else f"{seeds} seeds per condition"
    return ", ".join([*dataset_names, units.format_count(len(answer.frames.runs), "run"), seeds_text])


def _name_condition(answer: ComparisonAnswer, condition: str | None) -> str:
    """Return the published name of the method `condition`; other conditions, such as values of client.lr, are as typed.

    `answer` is the comparison, which has the option whose values are the conditions.
    """
    return name_method(str(condition)) if answer.matching.condition in METHOD_FOLDERS else str(condition)


def _draw_intervals(answer: ComparisonAnswer, folder: Path) -> list[Path]:
    """Draw one point for each setting and condition: its difference to the baseline, or its mean without a baseline.

    `answer` is the comparison; the files are written into `folder` and returned.
    """
    table, unit = answer.headline, find_metric_unit(answer.headline.options.metric)
    cells = [cell for cell in _sort_cells(answer) if _has_difference(table.results[cell])]
    figure_name, drawn_cells = ("forest", cells) if cells else ("means", _sort_cells(answer))
    baseline_name, metric = _name_condition(answer, answer.question.baseline), label_metric(table.options.metric)
    group_by_cell = {cell: _name_method_group(answer, cell) for cell in drawn_cells}
    n_groups = len(set(group_by_cell.values()))
    shows_name_parts = [len(table.settings) > 1, answer.matching.condition in METHOD_FOLDERS and n_groups > 1]
    interval_rows = []
    for cell in drawn_cells:
        cell_result = table.results[cell]
        estimate: Mean = cell_result.difference if cells and cell_result.difference is not None else cell_result.mean
        lower_end, upper_end = estimate.low * unit.factor, estimate.high * unit.factor
        group = ", ".join(compress((cell[0], group_by_cell[cell]), shows_name_parts))
        sign, has_other_options = sign_of_verdict(cell_result.verdict), bool(answer.differing_options.get(cell))
        # hollow: no significant difference, or runs that differ in more than what is compared
        verdict_text = _format_verdict(cell_result, baseline_name, has_other_options=has_other_options)
        row_style = (sign, verdict_text, bool(sign) and not has_other_options) if cells else ()
        label = f"{_name_condition(answer, cell[1])} (n={estimate.n})"
        interval_rows.append(IntervalRow(label, group, estimate.mean * unit.factor, lower_end, upper_end, *row_style))
    title = f"{metric}: paired difference to {baseline_name}" if cells else f"{metric}: {describe_estimate(answer)}"
    axis_label = f"better than {baseline_name}, {unit.difference}" if cells else f"{metric}, {unit.name}"
    figure = draw_intervals(interval_rows, title, _format_note(answer), axis_label.rstrip(", "), 0.0 if cells else None)
    return style.save_figure(figure, folder / f"{figure_name}.png", style.FILE_FORMATS)


def _name_method_group(answer: ComparisonAnswer, cell: Cell) -> str:
    return ORACLE_GROUP if answer.headline.results[cell].is_untested else describe_method(cell[1])[1]


def _sort_cells(answer: ComparisonAnswer) -> list[Cell]:
    """Return the pairs (setting, condition) of `answer` by setting and group of method, the best of a group first."""
    settings = list(answer.headline.settings)
    return sorted(
        sort_cells(answer), key=lambda c: (settings.index(c[0]), METHOD_GROUPS.index(_name_method_group(answer, c)))
    )


def _has_difference(cell_result: CellResult) -> bool:
    return cell_result.difference is not None and math.isfinite(cell_result.difference.mean)


def _format_verdict(cell_result: CellResult, baseline: str, *, has_other_options: bool) -> str:
    verdict_by_sign = {1: f"better than {baseline}", -1: f"worse than {baseline}", 0: "no significant difference"}
    is_tested = cell_result.verdict != "too few seeds"
    verdict = verdict_by_sign[sign_of_verdict(cell_result.verdict)] if is_tested else "too few seeds for a test"
    return f"{verdict}, but other options differ" if has_other_options else verdict


def _draw_differences(answer: ComparisonAnswer, curves: RunsByCell, folder: Path) -> list[Path]:
    """Draw one panel for each method: its curve minus the baseline's, by round; return the files in `folder`.

    `answer` is the comparison; `curves` are its evaluations by setting, condition and seed.
    """
    table, baseline, name = answer.headline, answer.question.baseline, _name_condition(answer, answer.question.baseline)
    unit = find_metric_unit(table.options.metric)
    drawn_cells = [cell for cell in _sort_cells(answer) if _has_difference(table.results[cell]) and cell in curves]
    curve_by_cell = {}
    for cell in drawn_cells:
        baseline_runs = curves.get((cell[0], str(baseline)), {})
        if len((curve := mean_curves.average_difference(curves[cell], baseline_runs, ROUNDS_AXIS, table.options)).x):
            curve_by_cell[cell] = curve
    if not curve_by_cell:
        return []
    title = f"{label_metric(table.options.metric)}: paired difference to {name} by round, {describe_estimate(answer)}"
    prefixes = [f"{setting}: " if len(table.settings) > 1 else "" for setting, _ in curve_by_cell]
    titles = [prefix + _name_condition(answer, cell[1]) for prefix, cell in zip(prefixes, curve_by_cell, strict=True)]
    n_columns = 2 if len(curve_by_cell) <= 4 else 4
    linear_limit = unit.factor * mean_curves.find_linear_limit(curve_by_cell.values(), table.options.rules)
    scale_text = f", logarithmic scale beyond ±{linear_limit:g} {unit.difference}" if linear_limit else ""
    figure, panels = style.make_panels(titles, title, _format_note(answer) + scale_text, columns=n_columns, height=1.0)
    for axes, (cell, curve) in zip(panels, curve_by_cell.items(), strict=True):
        colour, marker = STYLE_BY_SIGN[sign_of_verdict(table.results[cell].verdict)]
        verdict_text = _format_verdict(table.results[cell], name, has_other_options=False)
        _draw_line(axes, curve, 1.0, unit.factor, {"color": colour, "marker": marker, "label": verdict_text})
        axes.axhline(0.0, color=style.BLACK, linewidth=0.8)
    mean_curves.set_vertical_scale(panels, linear_limit)
    figure.supylabel(f"better by, {unit.difference}".rstrip(", "), fontsize=style.FONT_SIZE)
    style.add_legend(figure)
    return style.save_figure(figure, folder / "differences.png", style.FILE_FORMATS)


def _draw_curves(answer: ComparisonAnswer, curves: RunsByCell, folder: Path) -> list[Path]:
    """Draw a row of panels for each setting: the metric by round, and by each cost that all runs logged.

    `answer` is the comparison; `curves` are its evaluations by setting, condition and seed. The files in `folder` are
    returned.
    """
    table = answer.headline
    unit, metric = find_metric_unit(table.options.metric), label_metric(table.options.metric)
    cost_axes = _label_cost_axes(curves)
    if not curves or not cost_axes:
        return []
    settings = list(table.settings)
    conditions = list(dict.fromkeys(condition for _, condition in table.results))
    line_styles = _choose_line_styles(answer, conditions)
    width = style.COLUMN_WIDTH if len(cost_axes) == 1 else style.PAGE_WIDTH
    height = 0.5 + 1.7 * len(settings) + style.LINE_HEIGHT * len(line_styles) / len(cost_axes)
    figure = style.make_figure(f"{metric}: {describe_estimate(answer)}", _format_note(answer), width, height)
    panel_grid = figure.subplots(len(settings), len(cost_axes), sharey="row", sharex="col", squeeze=False)
    for i, setting in enumerate(settings):
        for axes, (axis, (factor, axis_label)) in zip(panel_grid[i], cost_axes.items(), strict=True):
            for condition in [*(name for name in conditions if name not in line_styles), *line_styles]:
                curve = mean_curves.average_curves(curves.get((setting, condition), {}), axis)
                if condition in line_styles:
                    _draw_line(axes, curve, factor, unit.factor, line_styles[condition])
                elif len(curve.x):
                    label = f"{len(conditions) - len(line_styles)} others"
                    axes.plot(curve.x * factor, curve.mean * unit.factor, color="#D5D5D5", linewidth=0.8, label=label)
            _mark_target(axes, answer, setting, unit)
            style.format_axes(axes)
            if axis == ROUNDS_AXIS:
                style.use_integer_ticks(axes.xaxis)
            if i == len(settings) - 1:
                axes.set_xlabel(axis_label)
        label = f"{setting + ': ' if len(settings) > 1 else ''}{metric}, {unit.name}".rstrip(", ")
        panel_grid[i, 0].set_ylabel(style.wrap_text(label, 1.7))
        if unit.name == "%":  # intervals of few seeds exceed the range of a share
            y_min, y_max = panel_grid[i, 0].get_ylim()
            panel_grid[i, 0].set_ylim(max(y_min, -2.0), min(y_max, 102.0))
    style.add_legend(figure)
    return style.save_figure(figure, folder / "curves.png", style.FILE_FORMATS)


def _mark_target(axes: "Axes", answer: ComparisonAnswer, setting: str, unit: MetricUnit) -> None:
    """Draw the metric's target as a line, if all seeds have the same one; its label says if no mean curve meets it.

    `axes` is the panel of `setting` with the curves; `answer` has the targets; `unit` is that of the metric.
    """
    targets = set(answer.target_costs.targets[setting].values()) if answer.target_costs is not None else set()
    if len(targets) == 1:
        shown_target, metric_sign = targets.pop() * unit.factor, answer.headline.options.sign
        values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines] or [np.empty(0)])
        is_target_met = np.any(metric_sign * values >= metric_sign * shown_target)
        target_label = f"target {shown_target:.4g} {unit.name}{'' if is_target_met else ', met by no mean curve'}"
        axes.axhline(shown_target, color=style.GREY, linewidth=1.0, linestyle="--", label=target_label)


def _label_cost_axes(curves: RunsByCell) -> dict[str, tuple[float, str]]:
    """Return the factor to the shown unit and the label of each horizontal axis, by name: rounds and logged costs.

    `curves` has the runs' evaluations; a cost that some run did not log is left out.
    """
    runs = [run.costs for run_by_seed in curves.values() for run in run_by_seed.values()]
    run_seconds, n_bytes = ([float(run_costs[axis][-1]) for run_costs in runs] for axis in ("virtual_s", "bytes"))
    label_by_axis = {ROUNDS_AXIS: (1.0, "communication round")} if curves else {}
    if min(run_seconds, default=0.0) > 0:
        unit_seconds, unit_name = style.choose_time_unit(run_seconds)
        label_by_axis["virtual_s"] = (1 / unit_seconds, f"virtual time, {unit_name}")
    if min(n_bytes, default=0.0) > 0:
        unit = find_metric_unit("comm/down_bytes", max(n_bytes))
        label_by_axis["bytes"] = (unit.factor, f"bytes, {unit.name}")
    return label_by_axis


def _choose_line_styles(answer: ComparisonAnswer, conditions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the line options of the conditions that are drawn in a colour, by condition; others are drawn in grey.

    These are the baseline and the best conditions on average over settings; `conditions` are all those of `answer`.
    """

    def mean(condition: str) -> float:
        cell_means = [result.mean.mean for cell, result in answer.headline.results.items() if cell[1] == condition]
        mean_result = answer.headline.options.sign * float(np.mean(cell_means))
        return mean_result if math.isfinite(mean_result) else -math.inf

    best_conditions = sorted(conditions, key=lambda n: (n != answer.question.baseline, -mean(n)))[: len(LINE_COLOURS)]
    names = list(dict.fromkeys(condition for _, condition in _sort_cells(answer) if condition in best_conditions))
    line_styles = zip(LINE_COLOURS, style.LINE_DASHES, style.LINE_MARKERS, strict=True)
    return {
        name: {"color": colour, "linestyle": line_dashes, "marker": marker, "label": _name_condition(answer, name)}
        for name, (colour, line_dashes, marker) in zip(names, line_styles, strict=False)
    }


def _draw_line(axes: "Axes", curve: MeanCurve, x_factor: float, y_factor: float, line_style: Mapping[str, Any]) -> None:
    if not len(curve.x):
        return
    x, mean, half_width = curve.x * x_factor, curve.mean * y_factor, curve.half_width * y_factor
    axes.plot(x, mean, linewidth=1.2, markersize=3, markevery=max(1, len(x) // 6), **line_style)
    if np.isfinite(half_width).any():
        axes.fill_between(x, mean - half_width, mean + half_width, color=line_style["color"], alpha=0.16, linewidth=0)
