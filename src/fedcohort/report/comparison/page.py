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

PAGE, MARK = "report.html", "<h2>How to read it</h2>"
RESULTS, TARGET = ("table.md", "table.tex", "table.csv"), ("target.md", "target.tex", "target.csv")
IMPROVING_SLOPE = 0.005 / 20  # slope of an accuracy per round above which the baseline is still improving
EQUAL_COST = 0.005  # relative difference up to which costs count as equal
FIGURES = tuple(f"{name}.{suffix}" for name in figures.FIGURES for suffix in style.FORMATS)


def write(answer: Answer, out: Path, curves: bool = True) -> tuple[str, list[Path]]:
    """Write all files into the folder `out`; return the tables in Markdown, and the files, the page first.

    Files of an earlier comparison that this one does not have are removed.
    """
    disk.check_outputs(out, (PAGE, *RESULTS, *TARGET, *FIGURES), PAGE, MARK)
    out.mkdir(parents=True, exist_ok=True)
    if not (out / PAGE).exists():
        write_atomically(out / PAGE, MARK)  # first: it marks the folder as one that may be overwritten
    drawn = figures.draw(answer, out, curves=curves)
    pictures = {path.stem: path for path in drawn if path.suffix == ".png"}
    texts = {PAGE: render("comparison.html.j2", pictures=pictures, picture=Picture, **_data(answer))}
    for names, table in ((RESULTS, result_table(answer)), (TARGET, target_table(answer))):
        if table is not None:
            texts |= dict(zip(names, (table.markdown() + "\n", table.latex(), table.csv()), strict=True))
    text = to_markdown(answer)
    texts["table.md"] = text
    for name, content in texts.items():
        write_atomically(out / name, content)
    for name in {*TARGET, *FIGURES} - {*texts, *(path.name for path in drawn)}:
        (out / name).unlink(missing_ok=True)
    return text, [*(out / name for name in texts), *drawn]


def to_markdown(answer: Answer) -> str:
    """Return the verdict, the tables and the notes in Markdown."""
    return render("comparison.md.j2", **_data(answer))


def show_in_notebook(answer: Answer) -> str:
    """Return the verdict and the tables as HTML for a notebook."""
    return render("comparison_notebook.html.j2", **_data(answer))


def title(answer: Answer) -> str:
    """Return the title, such as `test/acc by selector and agg, against random`."""
    q = answer.question
    text = f"{q.metrics[0]} by {' and '.join(filter(None, (q.rows, q.cols)))}"
    return f"{text}, against {q.baseline}" if q.baseline is not None else text


def list_verdicts(answer: Answer) -> list[str]:
    """Return the verdicts as sentences; none without a baseline."""
    if answer.question.baseline is None:
        return []
    table = answer.headline
    unit, places = unit_of(table.options.metric), difference_decimals(table)
    methods_by_setting = {}

    def quantity(value: float) -> str:
        """Return a value with its unit, such as `1 point`, `2.7 points` or `0.05 nats`; "" for NaN."""
        number, plural = f"{value * unit.factor:.2g}", unit.difference
        name = plural.removesuffix("s") if plural == "points" and number == "1" else plural
        return f"{number} {name}".strip() if math.isfinite(value) else ""

    for name in table.settings:
        entries = {condition: entry for condition, entry in table.in_setting(name).items() if entry.difference}
        if entries:
            methods_by_setting[name] = [_describe(answer, (name, c), e, unit, places) for c, e in entries.items()]
    text = render(
        "verdict.md.j2",
        methods_by_setting=methods_by_setting,
        settings=table.settings,
        baseline=answer.question.baseline,
        rules=table.options.rules,
        quantity=quantity,
        improving_slope=IMPROVING_SLOPE if unit.name == "%" else math.inf,
        power=f"{100 * POWER:g}",
        newest=answer.newest,
    )
    return [line.strip() for line in text.splitlines() if line.strip()]


def _describe(answer: Answer, cell: Cell, entry: Entry, unit: MetricUnit, places: int) -> dict[str, Any]:
    """Return the values that the template needs for one method, with numbers as text.

    `interval` is that of the absolute difference `size`, or of the signed one without a significant difference. `costs`
    are (times the baseline's, name) of each cost that differs. `unlike` are options that differ as well.
    """
    gap = entry.difference or NO_DIFFERENCE
    mean, low, high = (value * unit.factor for value in (gap.mean, gap.low, gap.high))
    ends = sorted((abs(low), abs(high))) if sign_of(entry.verdict) else (low, high)
    times = {COST_NAMES[cost]: by_cell[cell].times for cost, by_cell in answer.costs.items()}
    unit_name = f" {unit.difference}" if unit.difference else ""
    return {
        "name": cell[1],
        "entry": entry,
        "gap": gap,
        "size": f"{abs(mean):.{places}f}{unit_name}",
        "signed": f"{mean:+.{places}f}{unit_name}",
        "interval": f"[{ends[0]:.{places}f}, {ends[1]:.{places}f}]" if math.isfinite(gap.half) else "",
        "p": show_p(entry.p),
        "costs": [(f"{x:.2f}", name) for name, x in times.items() if math.isfinite(x) and abs(x - 1) > EQUAL_COST],
        "knows_costs": any(map(math.isfinite, times.values())),
        "unlike": answer.unlike.get(cell, ()),
    }


def _data(answer: Answer) -> dict[str, Any]:
    """Return the values that both templates show."""
    return {
        "title": title(answer),
        "answer": answer,
        "question": answer.question,
        "options": answer.headline.options,
        "window": answer.headline.window,
        "verdicts": list_verdicts(answer),
        "results": result_table(answer),
        "times": target_table(answer),
        "target": describe_target(answer),
    }


def describe_target(answer: Answer) -> str:
    """Return the target as text: `84 %`, `81.2 to 84 %` if settings or seeds have different ones, or "" without one."""
    if answer.times is None:
        return ""
    unit = unit_of(answer.headline.options.metric)
    targets = [value for by_seed in answer.times.targets.values() for value in by_seed.values()]
    if not (values := sorted(unit.factor * value for value in targets)):
        return "not known"
    ends = f"{values[0]:.4g}" if values[0] == values[-1] else f"{values[0]:.4g} to {values[-1]:.4g}"
    return f"{ends} {unit.name}".strip()
