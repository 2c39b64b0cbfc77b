"""The page of a study as one HTML file: styles and pictures are inside, and nothing is asked of any server."""

import html
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.observe import web

if TYPE_CHECKING:
    from fedcohort.study.report import Page


def render(page: "Page", folder: Path) -> str:
    """Return the whole file. folder: of the pictures."""
    study = page.study
    parts = [f"<h1>{html.escape(study.title)}</h1>", f"<p class=question>{html.escape(study.question)}</p>"]
    parts += [web.prose(text) for text in page.opening]
    for name, what in page.pictures:
        parts.append(web.picture(folder / name, what))
    for sheet in page.overview:
        title = html.escape(f"{sheet.title[0].upper()}{sheet.title[1:]}")
        parts += [f"<h2>{title}</h2>", sheet.html()] if sheet.rows else []
    parts += ["<h2>How to read it</h2>", web.prose("\n".join(f"- {line}" for line in page.cautions))]
    parts += ["<h2>Regime by regime</h2>"] if page.cells else []
    for sheet in page.cells:
        words = html.escape(" ".join(study.cells[sheet.name.removeprefix("cell_")].words))
        parts += [f"<h3>{html.escape(sheet.title)}</h3>", f"<p><code>{words}</code></p>", sheet.html()]
    for title, lines in (("Missing", page.missing), ("Refused", page.refused), ("Where it comes from", page.origin)):
        parts += [f"<h2>{title}</h2>", web.prose("\n".join(f"- {line}" for line in lines))] if lines else []
    return web.document(study.title, parts)
