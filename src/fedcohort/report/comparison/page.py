"""The files of a comparison: a page with everything, tables for papers, and figures."""

from pathlib import Path
from typing import Any

from fedcohort.host import disk
from fedcohort.record.folder import write_atomically
from fedcohort.report.comparison import figures
from fedcohort.report.comparison.tables import result_table, target_table
from fedcohort.report.comparison.verdicts import list_verdicts
from fedcohort.report.figure import style
from fedcohort.report.render import Picture, render
from fedcohort.results.matching.question import Answer
from fedcohort.results.metric import unit_of

PAGE, MARK = "report.html", "<h2>How to read it</h2>"
RESULTS, TARGET = ("table.md", "table.tex", "table.csv"), ("target.md", "target.tex", "target.csv")
FIGURES = tuple(f"{name}.{suffix}" for name in figures.CAPTIONS for suffix in style.FORMATS)


def write(answer: Answer, out: Path, curves: bool = True) -> tuple[str, list[Path]]:
    """Write all files into the folder `out`; return the tables in Markdown, and the files, the page first.

    Files of an earlier comparison that this one does not have are removed.
    """
    disk.check_outputs(out, (PAGE, *RESULTS, *TARGET, *FIGURES), PAGE, MARK)
    out.mkdir(parents=True, exist_ok=True)
    if not (out / PAGE).exists():
        write_atomically(out / PAGE, MARK)  # first: it marks the folder as one that may be overwritten
    drawn = figures.draw(answer, out, curves=curves)
    pictures = [
        Picture(out / f"{name}.png", caption)
        for name, caption in figures.CAPTIONS.items()
        if out / f"{name}.png" in drawn
    ]
    texts = {PAGE: render("comparison.html.j2", pictures=pictures, **_data(answer))}
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
