"""The page of a study as one HTML file: styles and pictures are inside, and nothing is asked of any server."""

import base64
import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.observe.figure import style

if TYPE_CHECKING:
    from fedcohort.study.report import Page

PIXEL = 96 / style.DPI  # of a page, of one of a picture
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; color: #222; background: #fff;
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
.question { color: #555; font-style: italic; }
code { font-size: .85em; background: #f4f4f4; padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
.wide { overflow-x: auto; border: 1px solid #e3e3e3; border-radius: 4px; }
.wide img { display: block; width: 100%; min-width: 40rem; height: auto; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid #ececec; }
td { white-space: nowrap; }
thead th { vertical-align: bottom; background: #f7f7f7; font-weight: 600; }
th:first-child { text-align: left; position: sticky; left: 0; background: #fff; min-width: 7rem; max-width: 13rem; }
thead th:first-child { background: #f7f7f7; }
tbody th { font-weight: 400; }
.strong td, .strong th { font-weight: 600; }
"""


def render(page: "Page", folder: Path) -> str:
    """Return the whole file. folder: of the pictures."""
    study = page.study
    parts = [f"<h1>{html.escape(study.title)}</h1>", f"<p class=question>{html.escape(study.question)}</p>"]
    parts += [_prose(text) for text in page.opening]
    for name, what in page.pictures:
        picture = (folder / name).read_bytes()
        wide = int(int.from_bytes(picture[16:20], "big") * PIXEL)  # where a PNG has its width
        data = base64.b64encode(picture).decode()
        image = f'<img style="max-width: {wide}px" alt="{html.escape(what)}" src="data:image/png;base64,{data}">'
        parts.append(f"<div class=wide tabindex=0>{image}</div><p></p>")
    for sheet in page.overview:
        title = html.escape(f"{sheet.title[0].upper()}{sheet.title[1:]}")
        parts += [f"<h2>{title}</h2>", sheet.html()] if sheet.rows else []
        parts += [_prose(sheet.note)] if sheet.rows and sheet.note else []
    parts += ["<h2>How to read it</h2>", _prose("\n".join(f"- {line}" for line in page.cautions))]
    parts += ["<h2>Regime by regime</h2>"] if page.cells else []
    for sheet in page.cells:
        words = html.escape(" ".join(study.cells[sheet.name.removeprefix("cell_")].words))
        parts += [f"<h3>{html.escape(sheet.title)}</h3>", f"<p><code>{words}</code></p>", sheet.html()]
    for title, lines in (("Missing", page.missing), ("Refused", page.refused), ("Where it comes from", page.origin)):
        parts += [f"<h2>{title}</h2>", _prose("\n".join(f"- {line}" for line in lines))] if lines else []
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(study.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body>\n</html>\n"


def _prose(text: str) -> str:
    """Turn paragraphs, lists, bold face and code of Markdown into HTML: all that the answer is written in."""
    blocks = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if all(line.startswith("- ") for line in lines):
            blocks.append("<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>")
        else:
            blocks.append(f"<p>{_inline(' '.join(lines))}</p>")
    return "\n".join(blocks)


def _inline(text: str) -> str:
    escaped = html.escape(text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
