"""The page of a study as one HTML file."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.report.html import document, picture, prose

if TYPE_CHECKING:
    from fedcohort.study.report import Page


def render(page: "Page", folder: Path) -> str:
    """Return the whole file. folder: of the pictures."""
    study = page.study
    parts = [f"<h1>{escape(study.title)}</h1>", f"<p class=question>{escape(study.question)}</p>"]
    parts += [prose(text) for text in page.opening]
    parts += [picture(folder / name, what) for name, what in page.pictures]
    for sheet in page.overview:
        title = escape(f"{sheet.title[0].upper()}{sheet.title[1:]}")
        parts += [f"<h2>{title}</h2>", sheet.html()] if sheet.rows else []
        parts += [prose(sheet.note)] if sheet.rows and sheet.note else []
    parts += ["<h2>How to read it</h2>", prose("\n".join(f"- {line}" for line in page.cautions))]
    parts += ["<h2>Regime by regime</h2>"] if page.cells else []
    for sheet in page.cells:
        words = escape(" ".join(study.cells[sheet.name.removeprefix("cell_")].words))
        parts += [f"<h3>{escape(sheet.title)}</h3>", f"<p><code>{words}</code></p>", sheet.html()]
        parts += [prose(sheet.note)] if sheet.note else []
    for title, lines in (("Missing", page.missing), ("Refused", page.refused), ("Where it comes from", page.origin)):
        parts += [f"<h2>{title}</h2>", prose("\n".join(f"- {line}" for line in lines))] if lines else []
    return document(study.title, parts)
