"""The page of an answer: one HTML file that opens with the verdict and holds every table and figure."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from fedcohort.observe.comparison import beside, render, render_target, verdict
from fedcohort.observe.comparison.question import Answer
from fedcohort.report import html

BEFORE = "forest.png"  # the figure that stands before the tables
UNKNOWN = "Without a baseline there is no verdict: `baseline=` names one."
ALONE = "Nobody can be compared with the baseline: what is said below has the reason."


def render_page(answer: Answer, pictures: Sequence[tuple[Path, str]]) -> str:
    """Return the whole file. pictures: each with what it shows."""
    table, found = answer.table, answer.found
    title = name(answer)
    counts = f"{sum(map(len, found.cells.values()))} runs"
    where = answer.question.query
    of = f"sweep {where.sweep}" if where.sweep else f"experiment {where.experiment}"
    parts = [f"<h1>{escape(title)}</h1>", f"<p class=question>{escape(f'{counts} of {of}')}</p>"]
    parts += [_say(said) for said in verdict.tell(table)] or [html.prose(UNKNOWN if table.baseline is None else ALONE)]
    parts += [html.picture(path, what) for path, what in pictures if path.name == BEFORE]
    times = render_target.sheets(answer.times) if answer.times is not None else []
    matrices = render.sheets(table) if table.cols_name is not None else []  # else one has all of it
    for sheet in (*times, *matrices, beside.sheet_of_all(table, answer.others, answer.costs)):
        parts += [f"<h2>{escape(sheet.title)}</h2>", sheet.html()]
    for path, what in pictures:
        if path.name != BEFORE:
            parts += [f"<h2>{escape(f'{what[0].upper()}{what[1:]}')}</h2>", html.picture(path, what)]
    remarks = [*(render_target.remarks(answer.times) if answer.times is not None else []), *render.remarks(table)]
    parts += ["<h2>How to read it</h2>", html.prose("\n".join(f"- {line}" for line in dict.fromkeys(remarks)))]
    return html.document(title, parts)


def _say(sentence: str) -> str:
    """The verdict in bold, or, where it is long, a line for each of its parts."""
    what, _, parts = sentence.partition(": ")
    lines = parts.split("; ")
    if len(lines) < 3:
        return html.prose(f"**{sentence}**")
    return html.prose(f"**{what}**") + html.prose("\n".join(f"- {line}" for line in lines))


def name(answer: Answer) -> str:
    """`test/acc by selector and agg, against random`."""
    table = answer.table
    by = f"{table.metric} by {' and '.join(filter(None, (table.rows_name, table.cols_name)))}"
    return f"{by}, against {table.baseline}" if table.baseline is not None else by
