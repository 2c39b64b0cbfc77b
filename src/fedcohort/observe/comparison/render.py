"""A table of a comparison as text: Markdown, LaTeX, CSV."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from fedcohort.observe.comparison import verdict
from fedcohort.observe.comparison.cells import Cell, spell
from fedcohort.observe.comparison.sheet import ODD, YARDSTICK, Sheet, exact, tex, write_csv
from fedcohort.observe.comparison.shown import digits, number, unit
from fedcohort.observe.comparison.table import Difference, Entry, Mean, Table


def title(table: Table) -> str:
    name = unit(table).name
    return f"{table.metric}{f', {name}' if name else ''}: mean ± standard deviation over n seeds"


def sheets(table: Table) -> list[Sheet]:
    """A table of means, and one of differences where there is a baseline."""
    found = [sheet_of(table, "means", title(table), lambda entry: _mean(table, entry))]
    if table.baseline is not None:
        what = f"Difference to {table.baseline} over common seeds [95 % interval], paired t-test"
        found.append(sheet_of(table, "differences", what, lambda entry: _gap(table, entry.difference)))
    return found


def markdown(table: Table, beside: Sequence[Sheet] = ()) -> str:
    """The verdict, a table of means, one of differences where there is a baseline, those `beside` it, and the notes."""
    out = [line for said in verdict.tell(table) for line in (f"> {said}", "")]
    for sheet in (*sheets(table), *beside):
        out += [f"### {sheet.title}", "", sheet.markdown(), ""]
    out += [f"- {line}" for line in remarks(table)]
    return "\n".join(out).rstrip() + "\n"


def remarks(table: Table) -> list[str]:
    """How to read it, then what doesn't fit."""
    best = [cell for cell, entry in table.entries.items() if entry.best]
    legend = "Bold: the best of its column, where its 95 % interval is clear of all the others'."
    if not best:
        legend = "No cell is bold: none has a 95 % interval that is clear of all the others in its column."
    single = [spell(cell) for cell, entry in table.entries.items() if entry.value.n < 2]
    which = "every cell" if len(single) == len(table.entries) > 1 else ", ".join(single)
    few = [f"n<2: {which}: no standard deviation, no interval"] if single else []
    odd = [f"{ODD} is not bold: it differs from others of its column in more than its {table.rows_name}, see below"]
    marks = [*(odd if any(entry.odd for entry in table.entries.values()) else [])]
    if any(entry.yardstick for entry in table.entries.values()):
        marks.append(f"{YARDSTICK} is a yardstick, no method: it reads what no server can know, see below")
    several = len(verdict.list_gaps(table))
    each = [f"each of the {several} intervals of differences is one of 95 % by itself"] if several > 1 else []
    return [legend, *each, *few, *marks, *table.notes]


class Marked(Protocol):
    """A cell as tables show it."""

    @property
    def odd(self) -> bool: ...

    @property
    def yardstick(self) -> bool: ...


E = TypeVar("E", bound=Marked)
EE = TypeVar("EE", bound=Marked, covariant=True)


class Cells(Protocol[EE]):
    """A table of cells."""

    @property
    def rows_name(self) -> str: ...

    @property
    def metric(self) -> str: ...

    @property
    def rows(self) -> Sequence[str]: ...

    @property
    def cols(self) -> Sequence[str]: ...

    @property
    def entries(self) -> Mapping[Cell, EE]: ...


def sheet_of(table: Cells[E], name: str, title: str, shown: Callable[[E], str]) -> Sheet:
    """Rows down, columns across."""
    head = [table.rows_name, *(col or table.metric for col in table.cols)]
    rows = [[row, *(_at(table, row, col, shown, (ODD, YARDSTICK)) for col in table.cols)] for row in table.rows]
    return Sheet(name, title, head, rows)


def _at(table: Cells[E], row: str, col: str, shown: Callable[[E], str], marks: Sequence[str]) -> str:
    entry = table.entries.get((row, col))
    if entry is None:
        return "–"
    marks = [mark for mark, meant in zip(marks, (entry.odd, entry.yardstick), strict=True) if meant]
    return " ".join([shown(entry), *marks])


def _spread(table: Table, value: Mean, pm: str) -> str:
    factor, d = unit(table).factor, digits(table)
    middle = number(value.mean * factor, d)
    return f"{middle} {pm} {number(value.std * factor, d)}" if value.n > 1 else middle


def _mean(table: Table, entry: Entry) -> str:
    text = _spread(table, entry.value, "±")
    return f"{f'**{text}**' if entry.best else text} (n={entry.value.n})"


def p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _gap(table: Table, gap: Difference | None) -> str:
    if gap is None:
        return "–"
    factor, d = unit(table).factor, digits(table)
    if gap.over.n == 0:
        return gap.why
    middle = f"{gap.over.mean * factor:+.{d}f}"
    if gap.over.n < 2:
        return f"{middle} ({gap.why})"
    if gap.why:
        return f"{middle}, {gap.why} (n={gap.over.n})"
    interval = f"[{gap.over.low * factor:+.{d}f}, {gap.over.high * factor:+.{d}f}]"
    return f"{middle} {interval}, {p_value(gap.p)} (n={gap.over.n})"


def latex(table: Table, beside: Sequence[Sheet] = ()) -> str:
    """A `tabular` of the same, for booktabs; differences in a second one, then those `beside` it, the notes below."""
    out = ["% needs \\usepackage{booktabs}", *(f"\\noindent {tex(line)}\\par" for line in verdict.tell(table))]
    out += tabular(table, lambda entry: _mean_tex(table, entry), title(table))
    if table.baseline is not None:
        caption = f"difference to {table.baseline} over common seeds, 95 % interval, paired t-test"
        out += ["", *tabular(table, lambda entry: tex(_gap(table, entry.difference)), caption)]
    for sheet in beside:
        out += ["", *sheet.latex().splitlines()]
    out += ["", "\\par\\footnotesize", *(f"{tex(line)}\\\\" for line in remarks(table))]
    return "\n".join(out) + "\n"


def tabular(table: Cells[E], shown: Callable[[E], str], caption: str) -> list[str]:
    """The lines of a table in LaTeX."""
    head = " & ".join(tex(text) for text in (table.rows_name, *(col or table.metric for col in table.cols)))
    body = [
        " & ".join([tex(r), *(_at(table, r, c, shown, (tex(ODD), tex(YARDSTICK))) for c in table.cols)]) + " \\\\"
        for r in table.rows
    ]
    begin = f"\\begin{{tabular}}{{l{'r' * len(table.cols)}}}"
    return [f"% {caption}", begin, "\\toprule", f"{head} \\\\", "\\midrule", *body, "\\bottomrule", "\\end{tabular}"]


def _mean_tex(table: Table, entry: Entry) -> str:
    text = f"${_spread(table, entry.value, chr(92) + 'pm')}$"
    return f"{f'{{{chr(92)}boldmath {text}}}' if entry.best else text} ({entry.value.n})"


def render_csv(*tables: Table) -> str:
    """Render one line a cell and metric, in the metric's own unit; empty where a number isn't known.

    unlike: the options in which the cell differs from its baseline's beside what is compared.
    """
    names = ["mean", "std", "n", "ci95_low", "ci95_high", "seeds", "bold", "odd", "yardstick"]
    gaps = ["diff", "diff_ci95_low", "diff_ci95_high", "diff_p", "diff_n", "verdict", "unlike"]
    head = [tables[0].rows_name, tables[0].cols_name or "column", "metric", *names, "baseline", *gaps]
    return write_csv([head, *(line for table in tables for line in _lines(table))])


def _lines(table: Table) -> Iterator[list[object]]:
    sides = {gap.cell: gap.side for gap in verdict.list_gaps(table)}
    for (row, col), entry in table.entries.items():
        own = [*exact(entry.value.mean, entry.value.std), entry.value.n]
        own += [
            *exact(entry.value.low, entry.value.high),
            " ".join(map(str, entry.seeds)),
            str(entry.best).lower(),
            str(entry.odd).lower(),
            str(entry.yardstick).lower(),
        ]
        gap = entry.difference
        theirs: list[object] = [""] * 7
        if gap is not None:
            theirs = [*exact(gap.over.mean, gap.over.low, gap.over.high, gap.p), gap.over.n]
            theirs += [verdict.word_of(gap.over.n, sides.get((row, col), 0)), " ".join(entry.unlike)]
        yield [row, col, table.metric, *own, (table.baseline or "") if gap is not None else "", *theirs]
