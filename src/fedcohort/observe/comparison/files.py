"""The files of an answer: tables in three languages, figures, and a page that has all of it."""

from collections.abc import Sequence
from pathlib import Path

from fedcohort.host import disk
from fedcohort.observe.comparison import beside, curves, draw, page, render, render_target, verdict
from fedcohort.observe.comparison.question import Answer
from fedcohort.observe.comparison.sheet import Sheet
from fedcohort.record.folder import write_atomically

PAGE, MARK = "report.html", "<h2>How to read it</h2>"
TEXTS = (PAGE, "table.md", "table.tex", "table.csv", "costs.csv", "target.md", "target.tex", "target.csv")
FIGURES = {  # what each shows, in the order of the page
    "forest.png": "the paired differences, the best first, with their 95 % intervals",
    "differences.png": "each curve minus the baseline's",
    "curves.png": "the curves",
    "means.png": "the means with their 95 % intervals",
}


def write(answer: Answer, out: Path) -> tuple[str, list[Path]]:
    """Write all files into the folder `out`, and return the text of the tables and the files.

    A file of an earlier answer that this one doesn't have is removed.
    """
    disk.check_outputs(out, (*TEXTS, *FIGURES), PAGE, MARK)
    out.mkdir(parents=True, exist_ok=True)
    if not (out / PAGE).exists():
        write_atomically(out / PAGE, MARK)  # first, as it shows whose the other files are
    table, times, sheets = answer.table, answer.times, list_beside(answer)
    texts = {
        "table.md": render.markdown(table, sheets),
        "table.tex": render.latex(table, sheets),
        "table.csv": render.render_csv(table, *answer.others),
    }
    if answer.costs:
        texts["costs.csv"] = beside.costs_csv(table, answer.costs)
    if times is not None:
        texts |= {
            "target.md": render_target.markdown(times, answer.found.notes),
            "target.tex": render_target.latex(times, answer.found.notes),
            "target.csv": render_target.render_csv(times),
        }
    drawn = _draw(answer, out)
    pictures = [(out / name, what) for name, what in FIGURES.items() if name in drawn]
    texts[PAGE] = page.render_page(answer, pictures)
    for name, text in texts.items():
        write_atomically(out / name, text)
    for name in {"costs.csv", "target.md", "target.tex", "target.csv", *FIGURES} - {*texts, *drawn}:
        (out / name).unlink(missing_ok=True)
    first = f"{render_target.markdown(times)}\n" if times is not None else ""
    return first + texts["table.md"], [out / name for name in (*texts, *drawn)]


def list_beside(answer: Answer) -> list[Sheet]:
    """The tables beside the headline's."""
    sheets = [beside.sheet_of_metrics(answer.table, answer.others)] if answer.others else []
    return sheets + ([beside.sheet_of_costs(answer.table, answer.costs)] if answer.costs else [])


def _draw(answer: Answer, out: Path) -> Sequence[str]:
    """Draw what there is to draw, and return the names."""
    table, found, histories = answer.table, answer.found, answer.histories
    draw.intervals(table, found, out / "means.png")
    drawn = ["means.png"]
    if verdict.list_gaps(table):
        draw.forest(table, found, out / "forest.png")
        drawn.append("forest.png")
    if answer.question.curves:
        curves.draw_curves(histories, found, table, out / "curves.png", answer.goal)
        drawn.append("curves.png")
        if curves.draw_differences(histories, found, table, out / "differences.png"):
            drawn.append("differences.png")
    return drawn
