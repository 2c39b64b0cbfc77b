"""The files of a comparison: a page with everything, tables for papers, and figures; and its verdicts in sentences."""

import math
from pathlib import Path
from typing import Any

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.comparison import figures
from fedcohort.report.comparison.tables import COST_NAMES, difference_decimals, result_table, show_p, target_table
from fedcohort.report.figure import style
from fedcohort.report.render import Picture, render
from fedcohort.results.compare import Cell, Entry
from fedcohort.results.difference import NO_DIFFERENCE
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import MetricUnit, unit_of
from fedcohort.results.power import POWER
from fedcohort.results.verdict import sign_of

PAGE, NOTES_HEADING = "report.html", "<h2>How to read it</h2>"
RESULTS, TARGET = ("table.md", "table.tex", "table.csv"), ("target.md", "target.tex", "target.csv")
IMPROVING_SLOPE = 0.005 / 20  # slope of an accuracy per round above which the baseline is still improving
EQUAL_COST = 0.005  # relative difference up to which costs count as equal
FIGURES = tuple(f"{name}.{suffix}" for name in figures.FIGURES for suffix in style.FORMATS)


def write(comparison: Answer, folder: Path, curves: bool = True) -> tuple[str, list[Path]]:
    """Write all files into the folder `folder`; return the tables in Markdown, and the files, the page first.

    Files of an earlier comparison that this one does not have are removed.
    """
    disk.check_outputs(folder, (PAGE, *RESULTS, *TARGET, *FIGURES), PAGE, NOTES_HEADING)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / PAGE).exists():
        write_atomically(folder / PAGE, NOTES_HEADING)  # first: it marks the folder as one that may be overwritten
    figure_paths = figures.draw(comparison, folder, curves=curves)
    pictures = {path.stem: path for path in figure_paths if path.suffix == ".png"}
    texts = {PAGE: render("comparison.html.j2", pictures=pictures, picture=Picture, **_data(comparison))}
    for names, table in ((RESULTS, result_table(comparison)), (TARGET, target_table(comparison))):
        if table is not None:
            texts |= dict(zip(names, (table.markdown() + "\n", table.latex(), table.csv()), strict=True))
    text = to_markdown(comparison)
    texts["table.md"] = text
    for name, content in texts.items():
        write_atomically(folder / name, content)
    for name in {*TARGET, *FIGURES} - {*texts, *(path.name for path in figure_paths)}:
        (folder / name).unlink(missing_ok=True)
    return text, [*(folder / name for name in texts), *figure_paths]


def to_markdown(comparison: Answer) -> str:
    """Return the verdict, the tables and the notes in Markdown."""
    return render("comparison.md.j2", **_data(comparison))


def show_in_notebook(comparison: Answer) -> str:
    """Return the verdict and the tables as HTML for a notebook."""
    return render("comparison_notebook.html.j2", **_data(comparison))


def title(comparison: Answer) -> str:
    """Return the title, such as `test/acc by selector and agg, against random`."""
    q = comparison.question
    text = f"{q.metrics[0]} by {' and '.join(filter(None, (q.rows, q.cols)))}"
    return f"{text}, against {q.baseline}" if q.baseline is not None else text


def list_verdicts(comparison: Answer) -> list[str]:
    """Return the verdicts as sentences; none without a baseline."""
    if comparison.question.baseline is None:
        return []
    table = comparison.headline
    unit, digits = unit_of(table.options.metric), difference_decimals(table)
    methods_by_setting = {}

    def quantity(value: float) -> str:
        """Return a value with its unit, such as `1 point`, `2.7 points` or `0.05 nats`; "" for NaN."""
        number, unit_name = f"{value * unit.factor:.2g}", unit.difference
        name = unit_name.removesuffix("s") if unit_name == "points" and number == "1" else unit_name
        return f"{number} {name}".strip() if math.isfinite(value) else ""

    for name in table.settings:
        entries = {condition: entry for condition, entry in table.in_setting(name).items() if entry.difference}
        if entries:
            methods_by_setting[name] = [_describe(comparison, (name, c), e, unit, digits) for c, e in entries.items()]
    text = render(
        "verdict.md.j2",
        methods_by_setting=methods_by_setting,
        settings=table.settings,
        baseline=comparison.question.baseline,
        rules=table.options.rules,
        quantity=quantity,
        improving_slope=IMPROVING_SLOPE if unit.name == "%" else math.inf,
        power=f"{100 * POWER:g}",
        newest=comparison.newest,
    )
    return [line.strip() for line in text.splitlines() if line.strip()]


def _describe(comparison: Answer, cell: Cell, entry: Entry, unit: MetricUnit, digits: int) -> dict[str, Any]:
    """Return the values that the template needs for one method, with numbers as text.

    `interval` is that of the absolute difference `size`, or of the signed one without a significant difference. `costs`
    are (times the baseline's, name) of each cost that differs. `unlike` are options that differ as well.
    """
    difference = entry.difference or NO_DIFFERENCE
    mean, low, high = (value * unit.factor for value in (difference.mean, difference.low, difference.high))
    bounds = sorted((abs(low), abs(high))) if sign_of(entry.verdict) else (low, high)
    ratios = {COST_NAMES[cost]: by_cell[cell].times for cost, by_cell in comparison.costs.items()}
    unit_name = f" {unit.difference}" if unit.difference else ""
    return {
        "name": cell[1],
        "entry": entry,
        "gap": difference,
        "size": f"{abs(mean):.{digits}f}{unit_name}",
        "signed": f"{mean:+.{digits}f}{unit_name}",
        "interval": f"[{bounds[0]:.{digits}f}, {bounds[1]:.{digits}f}]" if math.isfinite(difference.half) else "",
        "p": show_p(entry.p),
        "costs": [(f"{x:.2f}", name) for name, x in ratios.items() if math.isfinite(x) and abs(x - 1) > EQUAL_COST],
        "knows_costs": any(map(math.isfinite, ratios.values())),
        "unlike": comparison.unlike.get(cell, ()),
    }


def _data(comparison: Answer) -> dict[str, Any]:
    """Return the values that both templates show."""
    return {
        "title": title(comparison),
        "answer": comparison,
        "question": comparison.question,
        "options": comparison.headline.options,
        "window": comparison.headline.window,
        "verdicts": list_verdicts(comparison),
        "results": result_table(comparison),
        "times": target_table(comparison),
        "target": describe_target(comparison),
    }


def describe_target(comparison: Answer) -> str:
    """Return the target as text: `84 %`, `81.2 to 84 %` if it differs by setting or seed, "" without a target."""
    if comparison.times is None:
        return ""
    unit = unit_of(comparison.headline.options.metric)
    targets = [value for by_seed in comparison.times.targets.values() for value in by_seed.values()]
    if not (values := sorted(unit.factor * value for value in targets)):
        return "not known"
    value_text = f"{values[0]:.4g}" if values[0] == values[-1] else f"{values[0]:.4g} to {values[-1]:.4g}"
    return f"{value_text} {unit.name}".strip()
