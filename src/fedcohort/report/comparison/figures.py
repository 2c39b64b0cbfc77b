"""The figures of a comparison: differences with intervals, curves, and their differences to the baseline's curves."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.report.comparison.bands import ROUNDS, Band, Curves, average, curves_by_cell, subtract
from fedcohort.report.figure import style
from fedcohort.results.compare import Cell, Entry
from fedcohort.results.difference import Mean
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import unit_of
from fedcohort.results.verdict import sign_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CAPTIONS = {  # in the order of the page
    "forest": "Paired differences, the best first, with 95 % intervals",
    "means": "Means over seeds with 95 % intervals",
    "differences": "Each curve minus the baseline's, with 95 % intervals",
    "curves": "Curves: means over seeds with 95 % intervals",
}
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.VERMILLION, style.PURPLE, style.SKY, style.BLACK)
LOOKS = {1: (style.BLUE, "o"), 0: (style.GREY, "D"), -1: (style.VERMILLION, "s")}  # by the sign of a verdict
MAX_LINES = len(COLOURS)  # lines that colours can distinguish
PERCENT = 100.0
PANEL_TITLE = 190.0  # font size in points times number of letters that fit above a panel


def draw(answer: Answer, out: Path, *, curves: bool = True) -> list[Path]:
    """Draw the figures in all formats and return the files; curves: whether to draw figures by round."""
    drawn = _draw_intervals(answer, out)
    if not curves:
        return drawn
    by_cell = curves_by_cell(answer.frames, answer.headline.options)
    return [*drawn, *_draw_differences(answer, by_cell, out), *_draw_curves(answer, by_cell, out)]


def _note(answer: Answer) -> str:
    """Return the second line of a figure, such as `12 runs, 3 seeds per cell`."""
    counts = sorted({entry.mean.n for entry in answer.headline.entries.values()})
    seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return f"{len(answer.frames.runs)} runs, {seeds} seeds per cell"


def _name(cell: Cell, answer: Answer) -> str:
    return f"{cell[0]}: {cell[1]}" if len(answer.headline.settings) > 1 else cell[1]


def _draw_intervals(answer: Answer, out: Path) -> list[Path]:
    """Draw one point for each cell: its difference to the baseline, or its mean without a baseline."""
    table, unit = answer.headline, unit_of(answer.headline.options.metric)
    cells = [(setting, condition) for setting in table.settings for condition in table.in_setting(setting)]
    compared = [cell for cell in cells if _has_difference(table.entries[cell])]
    name, points = ("forest", compared) if compared else ("means", cells)
    baseline = answer.question.baseline
    metric = table.options.metric
    title = f"{metric}: paired difference to {baseline}" if compared else f"{metric}: mean and 95 % interval"
    canvas = style.titled(title, _note(answer), style.PAGE, max(2.4, 1.7 + 0.26 * len(points)))
    axes = canvas.subplots()
    for y, cell in enumerate(points):
        entry = table.entries[cell]
        value: Mean = entry.difference if compared and entry.difference is not None else entry.mean
        colour, marker = LOOKS[sign_of(entry.verdict)] if compared else (style.BLUE, "o")
        look: dict[str, Any] = {"color": colour, "fmt": marker, "capsize": 3, "markersize": 4.5}
        if compared:  # hollow: no significant difference, or runs that differ in more than what is compared
            look |= {"label": _legend(entry, baseline, unlike=bool(answer.unlike.get(cell)))}
            look |= {"fillstyle": "none" if not sign_of(entry.verdict) or answer.unlike.get(cell) else "full"}
        half = [value.half * unit.factor] if math.isfinite(value.half) else None
        axes.errorbar([value.mean * unit.factor], [y], xerr=half, **look)
    if compared:
        axes.axvline(0.0, color=style.BLACK, linewidth=1.0)
        axes.set_xlabel(f"better than {baseline}, {unit.difference}".rstrip(", "))
        style.legend(canvas, 3)
    else:
        axes.set_xlabel(f"{metric}, {unit.name}".rstrip(", "))
    if unit.name == "%":  # the interval of two seeds exceeds the possible values by far
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, -PERCENT - 1 if compared else -1), min(high, PERCENT + 1))
    axes.set_yticks(range(len(points)), [f"{_name(cell, answer)} (n={_count(table.entries[cell])})" for cell in points])
    axes.set_ylim(len(points) - 0.4, -0.6)
    style.tidy(axes)
    return style.save(canvas, out / f"{name}.png", style.FORMATS)


def _has_difference(entry: Entry) -> bool:
    return entry.difference is not None and math.isfinite(entry.difference.mean)


def _count(entry: Entry) -> int:
    return entry.difference.n if entry.difference is not None else entry.mean.n


def _legend(entry: Entry, baseline: str | None, *, unlike: bool) -> str:
    sign = sign_of(entry.verdict)
    verdict = {1: f"better than {baseline}", -1: f"worse than {baseline}"}.get(sign, "no significant difference")
    return f"{verdict}, but other options differ" if unlike else verdict


def _draw_differences(answer: Answer, curves: Curves, out: Path) -> list[Path]:
    """Draw one panel for each method: its curve minus the baseline's, by round."""
    table, baseline = answer.headline, answer.question.baseline
    unit = unit_of(table.options.metric)
    cells = [
        (setting, condition)
        for setting in table.settings
        for condition, entry in table.in_setting(setting).items()
        if _has_difference(entry) and (setting, condition) in curves
    ]
    bands = {
        cell: subtract(curves[cell], curves.get((cell[0], str(baseline)), {}), ROUNDS, table.options) for cell in cells
    }
    bands = {cell: band for cell, band in bands.items() if len(band.x)}
    if not bands:
        return []
    title = f"{table.options.metric}: paired difference to {baseline} by round, mean and 95 % interval"
    figure, panels = style.panels(len(bands), title, _note(answer))
    for axes, (cell, band) in zip(panels, bands.items(), strict=True):
        entry = table.entries[cell]
        look = {
            "color": LOOKS[sign_of(entry.verdict)][0],
            "linewidth": 1.3,
            "label": _legend(entry, baseline, unlike=False),
        }
        _line(axes, band, 1.0, unit.factor, look)
        axes.axhline(0.0, color=style.BLACK, linewidth=0.8)
        name = _name(cell, answer)
        axes.set_title(name, fontsize=min(style.SMALL, PANEL_TITLE / len(name)), loc="left", pad=3)
        style.whole_numbers(axes.xaxis, 4)
    if unit.name == "%":
        low, high = panels[0].get_ylim()
        panels[0].set_ylim(max(low, -PERCENT), min(high, PERCENT))
    panels[-1].set_xlabel("communication round", loc="right")
    figure.supylabel(f"better by, {unit.difference}".rstrip(", "), fontsize=style.SMALL + 1)
    style.legend(figure, 3)
    return style.save(figure, out / "differences.png", style.FORMATS)


def _draw_curves(answer: Answer, curves: Curves, out: Path) -> list[Path]:
    """Draw a row of panels for each setting: the metric by round, and by each cost that all runs logged."""
    table = answer.headline
    unit, metric = unit_of(table.options.metric), table.options.metric
    columns = _columns(curves)
    if not curves or not columns:
        return []
    settings = list(table.settings)
    conditions = list(dict.fromkeys(condition for _, condition in table.entries))
    coloured = _choose(answer, conditions)
    height = style.HEAD + 0.5 + 2.1 * len(settings) + 0.2 * (len(coloured) // 4 + 1)
    canvas = style.titled(f"{metric}: mean and 95 % interval over seeds", _note(answer), style.PAGE, height)
    grid = canvas.subplots(len(settings), len(columns), sharey="row", sharex="col", squeeze=False)
    for i, setting in enumerate(settings):
        for axes, (axis, (factor, axis_label)) in zip(grid[i], columns.items(), strict=True):
            for condition in [*(name for name in conditions if name not in coloured), *coloured]:
                band = average(curves.get((setting, condition), {}), axis)
                if condition in coloured:
                    _line(axes, band, factor, unit.factor, coloured[condition])
                elif len(band.x):
                    label = f"{len(conditions) - len(coloured)} others"
                    axes.plot(band.x * factor, band.mean * unit.factor, color="#D5D5D5", linewidth=0.8, label=label)
            _mark_target(axes, answer, setting, unit.factor)
            style.tidy(axes)
            if axis == ROUNDS:
                style.whole_numbers(axes.xaxis, 5)
            if i == len(settings) - 1:
                axes.set_xlabel(axis_label)
        grid[i, 0].set_ylabel(f"{setting + ': ' if len(settings) > 1 else ''}{metric}, {unit.name}".rstrip(", "))
    style.legend(canvas, 4)
    return style.save(canvas, out / "curves.png", style.FORMATS)


def _mark_target(axes: "Axes", answer: Answer, setting: str, factor: float) -> None:
    """Draw the target as a line if it is one number."""
    targets = set(answer.times.targets[setting].values()) if answer.times is not None else set()
    if len(targets) == 1:
        axes.axhline(factor * targets.pop(), color=style.GREY, linewidth=1.0, linestyle="--", label="target")


def _columns(curves: Curves) -> dict[str, tuple[float, str]]:
    """Return factor and label of each axis that all runs logged."""
    last = {
        axis: [float(run.spent[axis][-1]) for by_seed in curves.values() for run in by_seed.values()]
        for axis in ("virtual_s", "bytes")
    }
    columns = {ROUNDS: (1.0, "communication round")} if curves else {}
    if last["virtual_s"] and min(last["virtual_s"]) > 0:
        size, name = style.virtual_unit(last["virtual_s"])
        columns["virtual_s"] = (1 / size, f"virtual time, {name}")
    if last["bytes"] and min(last["bytes"]) > 0:
        unit = unit_of("comm/down_bytes", max(last["bytes"]))
        columns["bytes"] = (unit.factor, f"bytes, {unit.name}")
    return columns


def _choose(answer: Answer, conditions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the options of the lines with a colour: the baseline, and the best conditions on average over settings."""

    def mean(condition: str) -> float:
        values = [entry.mean.mean for cell, entry in answer.headline.entries.items() if cell[1] == condition]
        value = answer.headline.options.sign * float(np.mean(values))
        return value if math.isfinite(value) else -math.inf

    best = sorted(conditions, key=lambda name: (name != answer.question.baseline, -mean(name)))[:MAX_LINES]
    names = [name for name in conditions if name in best]
    return {name: {"color": COLOURS[i], "linewidth": 1.4, "label": name} for i, name in enumerate(names)}


def _line(axes: "Axes", band: Band, across: float, factor: float, look: Mapping[str, Any]) -> None:
    if not len(band.x):
        return
    x, mean, half = band.x * across, band.mean * factor, band.half * factor
    axes.plot(x, mean, **look)
    if np.isfinite(half).any():
        axes.fill_between(x, mean - half, mean + half, color=look["color"], alpha=0.16, linewidth=0)
