"""A table of a report: a DataFrame that is written as Markdown, HTML, LaTeX and CSV."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fedcohort.report.render import escape_markdown, render
from fedcohort.results.method_names import name_method

if TYPE_CHECKING:
    import pandas as pd
EMPTY_CELL = "–"
MAX_SHORT_CELL_LENGTH = 30  # characters above which a cell with letters is a text, which may wrap
METHOD_COLUMNS = {"method", "selector", "agg"}
LATEX_SYMBOLS = {  # in base LaTeX, without further packages; <= is replaced before <
    "<=": r"$\leq$",
    ">=": r"$\geq$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "<": "$<$",
    ">": "$>$",
    "−": "$-$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "▲": r"$\bigtriangleup$",
    "▼": r"$\bigtriangledown$",
}


@dataclass(frozen=True)
class Table:
    """A table with its caption.

    Attributes:
        frame: the values, with numbers as numbers; CSV files have all columns in full precision.
        caption: describes the table, with unit, interval and number of seeds.
        formats: format specification of a column, such as `.1f`. A missing value is shown as a dash.
        values: content of a CSV file if the frame contains formatted texts.
    """

    frame: "pd.DataFrame"
    caption: str
    formats: Mapping[str, str] = field(default_factory=dict)
    values: "pd.DataFrame | None" = None

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [str(name) for name in self.frame]

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells as plain text, by row."""
        columns = [[self._format_cell(name, value) for value in self.frame[name]] for name in self.headings]
        return [list(row) for row in zip(*columns, strict=True)]

    @cached_property
    def text_columns(self) -> set[int]:
        """The positions of the columns with long texts, except the first; they are left-aligned and wrap."""
        numbered_cells = ((i, cell) for row in self.rows for i, cell in enumerate(row) if i)
        return {i for i, cell in numbered_cells if len(cell) > MAX_SHORT_CELL_LENGTH and re.search("[A-Za-z]{3}", cell)}

    @cached_property
    def name_columns(self) -> set[int]:
        """The positions of the columns whose cells are mostly names, except the first; they are left-aligned."""
        starts_with_letter = [[row[i][:1].isalpha() for row in self.rows] for i in range(len(self.headings))]
        return {i for i, cell_flags in enumerate(starts_with_letter) if i and 2 * sum(cell_flags) > len(cell_flags)}

    def markdown(self) -> str:
        """Return a Markdown table without the caption."""
        separator_cells = [
            "---" if i in {0} | self.text_columns | self.name_columns else "---:" for i in range(len(self.headings))
        ]
        heading_cells, *body_rows = [list(map(escape_markdown, row_cells)) for row_cells in (self.headings, *self.rows)]
        table_rows = [heading_cells, separator_cells, *body_rows]
        return "\n".join("| " + " | ".join(row_cells) + " |" for row_cells in table_rows)

    def html(self) -> Markup:
        """Return an HTML table with the caption, for the stylesheet of `report/templates`."""
        return Markup(render("table.html.j2", table=self))

    def latex(self) -> str:
        """Return a LaTeX `table` environment with the caption, for booktabs; methods have their published names."""
        import pandas as pd

        frame = pd.DataFrame(self.rows, columns=self.headings)
        for name in METHOD_COLUMNS & set(frame):
            frame[name] = [re.sub(r"[a-z]\w*", lambda option: name_method(option[0]), cell) for cell in frame[name]]
        styler = frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
        columns = "l" + "r" * (len(self.headings) - 1)
        caption = re.sub(r"([&%$#_{}])", r"\\\1", self.caption.replace("\\", r"\textbackslash "))
        caption = caption.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ")
        latex: str = styler.to_latex(hrules=True, caption=caption, column_format=columns, position_float="centering")
        for special_symbol, latex_command in LATEX_SYMBOLS.items():
            latex = latex.replace(special_symbol, latex_command)
        return latex

    def csv(self) -> str:
        """Return all columns of the frame in full precision; a missing value is empty."""
        return str((self.frame if self.values is None else self.values).to_csv(index=False, lineterminator="\n"))

    def _format_cell(self, name: str, value: Any) -> str:  # noqa: ANN401 - a cell may hold anything
        import pandas as pd

        if value is None or value is pd.NA or value != value or value == "":
            return EMPTY_CELL
        return format(value, self.formats.get(name, ""))
