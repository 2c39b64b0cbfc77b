"""The files of a comparison: a page with everything, tables for papers, and figures; and its verdicts in sentences."""

import math
from pathlib import Path
from typing import Any

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.comparison import figures, tables
from fedcohort.report.figure import style
from fedcohort.report.render import Picture, render
from fedcohort.results.compare import Cell, CellResult
from fedcohort.results.difference import EMPTY_DIFFERENCE
from fedcohort.results.matching.question import ComparisonAnswer
from fedcohort.results.metric import MetricUnit, find_metric_unit
from fedcohort.results.verdict import TARGET_POWER

PAGE_FILE, NOTES_HEADING = "report.html", "<h2>How to read it</h2>"
RESULT_TABLE_FILES, TARGET_FILES = ("table.md", "table.tex", "table.csv"), ("target.md", "target.tex", "target.csv")
MIN_IMPROVING_SLOPE = 0.005 / 20  # slope of an accuracy per round above which the baseline is still improving
EQUAL_COST_TOLERANCE = 0.005  # relative difference up to which costs count as equal
FIGURE_FILES = tuple(f"{name}.{suffix}" for name in figures.FIGURE_NAMES for suffix in style.FILE_FORMATS)


def write_comparison_files(comparison: ComparisonAnswer, folder: Path, curves: bool = True) -> tuple[str, list[Path]]:
    """Write all files of a comparison, and return the tables in Markdown, and the files, the page first.

    Files of an earlier comparison that this one does not have are removed.

    Args:
        comparison: result of the comparison.
        folder: folder of the files.
        curves: whether to draw the figures with rounds or costs on the horizontal axis, too.
    """
    disk.reject_foreign_files(
        folder, (PAGE_FILE, *RESULT_TABLE_FILES, *TARGET_FILES, *FIGURE_FILES), PAGE_FILE, NOTES_HEADING
    )
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / PAGE_FILE).exists():
        write_atomically(folder / PAGE_FILE, NOTES_HEADING)  # first: it marks the folder as one that may be overwritten
    figure_paths = figures.draw_comparison(comparison, folder, curves=curves)
    picture_by_name = {path.stem: path for path in figure_paths if path.suffix == ".png"}
    page_data = _collect_data(comparison)
    files = {PAGE_FILE: render("comparison.html.j2", pictures=picture_by_name, picture=Picture, **page_data)}
    for file_names, table in ((RESULT_TABLE_FILES, page_data["results"]), (TARGET_FILES, page_data["times"])):
        if table is not None:
            files |= dict(zip(file_names, (table.markdown() + "\n", table.latex(), table.csv()), strict=True))
    tables_text = files["table.md"] = render("comparison.md.j2", **page_data)
    for file_name, file_text in files.items():
        write_atomically(folder / file_name, file_text)
    for file_name in {*TARGET_FILES, *FIGURE_FILES} - {*files, *(path.name for path in figure_paths)}:
        (folder / file_name).unlink(missing_ok=True)
    return tables_text, [*(folder / file_name for file_name in files), *figure_paths]


def to_markdown(comparison: ComparisonAnswer) -> str:
    """Return the verdict, the tables and the notes of `comparison` in Markdown."""
    return render("comparison.md.j2", **_collect_data(comparison))


def show_in_notebook(comparison: ComparisonAnswer) -> str:
    """Return the verdict and the tables of `comparison` as HTML for a notebook."""
    return render("comparison_notebook.html.j2", **_collect_data(comparison))


def format_title(comparison: ComparisonAnswer) -> str:
    """Return the title of `comparison`, such as "test/acc by selector and agg, against random"."""
    question = comparison.question
    metric_text = f"{question.metrics[0]} by {' and '.join(filter(None, (question.rows, question.cols)))}"
    return f"{metric_text}, against {question.baseline}" if question.baseline is not None else metric_text


def list_verdicts(comparison: ComparisonAnswer) -> list[str]:
    """Return the verdicts of `comparison` as sentences; none without a baseline."""
    if comparison.question.baseline is None:
        return []
    table = comparison.headline
    unit, n_decimals = find_metric_unit(table.options.metric), tables.count_difference_decimals(table)
    methods_by_setting = {}

    def format_quantity(value: float) -> str:
        """Return a metric's difference with its unit, such as "1 point", "2.7 points" or "0.05 nats"; "" for NaN."""
        number_text, unit_name = f"{value * unit.factor:.2g}", unit.difference
        unit_text = unit_name.removesuffix("s") if unit_name == "points" and number_text == "1" else unit_name
        return f"{number_text} {unit_text}".strip() if math.isfinite(value) else ""

    for setting in table.settings:
        entries = {(setting, condition): e for condition, e in table.list_results(setting).items() if e.difference}
        if entries:
            methods_by_setting[setting] = [
                _describe_method(comparison, c, e, unit, n_decimals) for c, e in entries.items()
            ]
    verdict_text = render(
        "verdict.md.j2",
        answer=comparison,
        methods_by_setting=methods_by_setting,
        quantity=format_quantity,
        improving_slope=MIN_IMPROVING_SLOPE if unit.name == "%" else math.inf,
        power=f"{100 * TARGET_POWER:g}",
    )
    return [line.strip() for line in verdict_text.splitlines() if line.strip()]


def _describe_method(
    comparison: ComparisonAnswer, cell: Cell, result: CellResult, unit: MetricUnit, n_decimals: int
) -> dict[str, Any]:
    """Return the values that the template needs for one method, by name, with numbers as text.

    `costs` has pairs of a multiple of the baseline's cost and the name of the cost, for costs that differ. `unlike` has
    the other options that differ from the baseline's. `n_diverged` counts the method's own diverged seeds.

    Args:
        comparison: result of the comparison.
        cell: setting and condition (method).
        result: mean, difference and verdict of this method in this setting.
        unit: unit of the metric.
        n_decimals: number of decimals.
    """
    difference = result.difference or EMPTY_DIFFERENCE
    cost_ratios = {tables.COST_NAMES[cost]: cost_by_cell[cell].ratio for cost, cost_by_cell in comparison.costs.items()}
    unit_name = f" {unit.difference}" if unit.difference else ""
    return {
        "name": cell[1],
        "entry": result,
        "n_diverged": sum(not math.isfinite(result.results[seed]) for seed in difference.by_seed),
        "signed": tables.format_mean(difference, unit.factor, f"+z.{n_decimals}f", unit_name),
        "p": tables.format_p(result.p),
        "costs": [
            (f"{x:.2f}", name)
            for name, x in cost_ratios.items()
            if math.isfinite(x) and abs(x - 1) > EQUAL_COST_TOLERANCE
        ],
        "knows_costs": any(map(math.isfinite, cost_ratios.values())),
        "unlike": comparison.differing_options.get(cell, ()),
    }


def _collect_data(comparison: ComparisonAnswer) -> dict[str, Any]:
    """Return the values of `comparison` that its templates share, by name."""
    return {
        "title": format_title(comparison),
        "answer": comparison,
        "verdicts": list_verdicts(comparison),
        "results": tables.make_result_table(comparison),
        "times": tables.make_cost_table(comparison),
        "target": describe_target(comparison),
    }


def describe_target(comparison: ComparisonAnswer) -> str:
    """Return the target of `comparison` as text, such as "84 %"; "" without a target.

    It is a range, such as "81.2 to 84 %", if it differs by setting or seed.
    """
    if comparison.target_costs is None:
        return ""
    unit = find_metric_unit(comparison.headline.options.metric)
    targets = [value for seed_targets in comparison.target_costs.targets.values() for value in seed_targets.values()]
    if not (values := sorted(unit.factor * value for value in targets)):
        return "not known"
    value_text = f"{values[0]:.4g}" if values[0] == values[-1] else f"{values[0]:.4g} to {values[-1]:.4g}"
    return f"{value_text} {unit.name}".strip()
