"""A table of words: shown as Markdown, HTML, LaTeX and CSV."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedcohort.report.html import table

NONE = "–"
ODD, YARDSTICK = "†", "‡"
ESCAPED = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
ESCAPED |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


@dataclass(frozen=True)
class Sheet:
    """A table. strong: the rows in bold face, by position; note: a line below it."""

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: frozenset[int] = frozenset()
    note: str = ""

    def markdown(self) -> str:
        lines = [self.head, ["---"] + ["---:"] * (len(self.head) - 1)]
        lines += [
            [f"**{cell}**" if i in self.strong and cell not in ("", NONE) else cell for cell in row]
            for i, row in enumerate(self.rows)
        ]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)

    def html(self) -> str:
        return table(self.head, self.rows, self.strong)

    def latex(self) -> str:
        lines = [" & ".join(map(tex, line)) + " \\\\" for line in (self.head, *self.rows)]
        columns = f"l{'r' * (len(self.head) - 1)}"
        told = [f"% {text}" for text in (self.title, self.note) if text]
        top = ["% needs \\usepackage{booktabs}", *told, f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
        return "\n".join([*top, lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}"]) + "\n"

    def csv(self) -> str:
        return write_csv([self.head, *self.rows])


def write_csv(rows: Sequence[Sequence[object]]) -> str:
    """Return lines of comma-separated values."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def tex(text: str) -> str:
    """Spell `text` in LaTeX."""
    plain = "".join(ESCAPED.get(letter, letter) for letter in text)
    for letter, command in (
        ("±", r"$\pm$"),
        (ODD, r"\dag{}"),
        (YARDSTICK, r"\ddag{}"),
        ("–", "--"),
        ("²", r"\textsuperscript{2}"),
        ("<", "$<$"),
        (">", "$>$"),
        ("×", r"$\times$"),
        ("−", "$-$"),
        ("▲", r"$\blacktriangle$"),
        ("▼", r"$\blacktriangledown$"),
    ):
        plain = plain.replace(letter, command)
    return plain


def exact(*values: float) -> Sequence[object]:
    """All digits; empty for what isn't known."""
    return [repr(value) if math.isfinite(value) else "" for value in values]
