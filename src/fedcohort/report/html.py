"""A page as one HTML file: styles and pictures are inside, and nothing is asked of any server."""

import base64
import html
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from fedcohort.report.figure import style

PIXEL = 96 / style.DPI  # of a page, of one of a picture
LEAST = 0.68  # of its own size, at which a picture can still be read
LONG = 30  # characters, from which a cell with a word in it is a text, which may be folded
NUMBER = re.compile(
    r"(?<![\w#])[-+−]?\d(?:[\d.,]*\d)?(?: %)?(?: \[[^\]]*\])?"
)  # with its interval: in one piece in a text, too
EMPHASIS = re.compile(  # `*word*` beside spaces and marks; a `*` of a product or a glob stays, and so does all code
    r"(?P<code>`.+?`)|(?:^|(?<=[\s(\[;>]))\*(?=[^\W\d_])(?P<words>[^*]*(?<=[^\W\d_]))\*(?=[\s.,:;!?)\]&<]|$)"
)
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 110rem; color: #222; background: #fff;
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
.question { color: #555; font-style: italic; }
.warning { border-left: 4px solid #d55e00; padding-left: .7rem; }
code { font-size: .85em; background: #f4f4f4; padding: .1em .3em; border-radius: 3px; overflow-wrap: anywhere; }
.wide { overflow-x: auto; border: 1px solid #e3e3e3; border-radius: 4px; }
.sheet { width: fit-content; max-width: 100%; }
.wide img { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .42rem; text-align: right; vertical-align: top; border-bottom: 1px solid #ececec; }
td, .number { white-space: nowrap; }
td.text { white-space: normal; min-width: 11rem; max-width: 34rem; }
td.text, th.text { text-align: left; }
thead th { vertical-align: bottom; background: #f7f7f7; font-weight: 600; }
th:first-child { text-align: left; position: sticky; left: 0; background: #fff; min-width: 7rem; max-width: 16rem; }
thead th:first-child { background: #f7f7f7; }
tbody th { font-weight: 400; }
.strong td, .strong th { font-weight: 600; }
.facts { max-width: 76rem; }
.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.facts th:first-child { min-width: 8rem; max-width: 15rem; }
"""


def document(title: str, parts: Sequence[str]) -> str:
    """Return the whole file; parts: what stands one below the other, HTML."""
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body>\n</html>\n"


def picture(path: Path, what: str) -> str:
    """Return a PNG as part of the page, in its own size at most, and not so small that it can't be read.

    what: it shows, for those who don't see it.
    """
    content = path.read_bytes()
    wide = int(int.from_bytes(content[16:20], "big") * PIXEL)  # where a PNG has its width
    widths = f"max-width: {wide}px; min-width: {int(wide * LEAST)}px"
    data = base64.b64encode(content).decode()
    image = f'<img style="{widths}" alt="{html.escape(what)}" src="data:image/png;base64,{data}">'
    return f'<div class=wide tabindex=0 style="max-width: {wide + 2}px">{image}</div><p></p>'


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return a table of labels and what they stand for."""
    lines = (f"<tr><th>{html.escape(label)}</th><td>{html.escape(value)}</td></tr>" for label, value in rows)
    return f"<div class='wide sheet' tabindex=0><table class=facts><tbody>{''.join(lines)}</tbody></table></div>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], strong: Collection[int] = ()) -> str:
    """Return a table whose first column has the names of its rows; strong: the places of rows in bold face.

    A column with a text in it stands at the left and is folded where the page is too narrow; numbers never are.
    """
    texts = {i for row in rows for i, cell in enumerate(row) if i and _is_text(cell)}
    names = "".join(f"<th scope=col{_mark(i in texts)}>{_inline(cell)}</th>" for i, cell in enumerate(head))
    lines = (
        f"<tr{' class=strong' if n in strong else ''}><th scope=row>{_inline(row[0])}</th>"
        f"{''.join(_cell(cell, i in texts) for i, cell in enumerate(row) if i)}</tr>"
        for n, row in enumerate(rows)
    )
    rest = "\n".join(lines)
    body = f"<thead><tr>{names}</tr></thead>\n<tbody>{rest}</tbody>"
    return f"<div class='wide sheet' tabindex=0><table>{body}</table></div>"


def _is_text(cell: str) -> bool:
    return len(cell) > LONG and re.search("[A-Za-z]{3}", cell) is not None


def _mark(is_text: bool) -> str:
    return " class=text" if is_text else ""


def _cell(cell: str, is_text: bool) -> str:
    inside = NUMBER.sub(r"<span class=number>\g<0></span>", _inline(cell)) if is_text else _inline(cell)
    return f"<td{_mark(is_text)}>{inside}</td>"


def prose(text: str) -> str:
    """Turn paragraphs, lists, bold face, emphasis and code of Markdown into HTML."""
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
    escaped = EMPHASIS.sub(lambda found: found["code"] or f"<em>{found['words']}</em>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
