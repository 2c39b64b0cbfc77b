"""Render pages from jinja2 templates, with one layout and one stylesheet.

HTML templates escape every value. The filter `render_markdown` converts Markdown to HTML and shows raw HTML as text.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from fedcohort import units

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


CSS_PIXELS = 96 / 150  # CSS pixels per pixel of a PNG with 200 dots per inch: text of 8 points has 14 pixels


@dataclass(frozen=True)
class Picture:
    """A PNG file with its caption.

    Attributes:
        path: the file.
        caption: describes the figure, also as its alternative text.
    """

    path: Path
    caption: str

    @property
    def width_px(self) -> int:
        """Width on the page in CSS pixels, from the header of the PNG."""
        with self.path.open("rb") as picture_file:
            return int(int.from_bytes(picture_file.read(20)[16:], "big") * CSS_PIXELS)

    @property
    def data_url(self) -> str:
        """The PNG file as a data URL, for a page without other files."""
        return "data:image/png;base64," + base64.b64encode(self.path.read_bytes()).decode()


def render(template: str, **template_values: object) -> str:
    """Return the text of a page.

    Args:
        template: a file of `report/templates`, such as `run.html.j2`. Values are escaped in HTML templates.
        **template_values: values by name. A missing name raises `jinja2.UndefinedError`.
    """
    return _make_environment().get_template(template).render(**template_values)


def render_markdown(markdown: str) -> Markup:
    """Return the Markdown in `markdown` as HTML; raw HTML in it is shown as text."""
    return Markup(_make_parser().render(markdown))


def render_document(title: str, markdown: str, folder: Path) -> str:
    """Return a page in Markdown as one HTML file, with its figures inside.

    Args:
        title: title of the HTML file; the heading of the page is part of `markdown`.
        markdown: the page in Markdown.
        folder: folder of the figures.
    """
    return render("document.html.j2", title=title, body=Markup(_make_parser().render(markdown, {"folder": folder})))


def escape_markdown(markdown: str) -> str:
    """Return `markdown` with the characters escaped that Markdown reads as HTML, table borders, emphasis or code."""
    return re.sub(r"([|<*`\\])", r"\\\1", markdown)


@cache
def _make_environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fedcohort.report"),
        autoescape=lambda template_name: template_name is not None and ".html" in template_name,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "markdown": render_markdown,
        "plain": escape_markdown,
        "percent": units.format_percent,
        "seconds": units.format_seconds,
        "rough_seconds": units.format_rough_seconds,
        "bytes": units.format_bytes,
        "count_of": units.format_count,
    }
    return environment


@cache
def _make_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    markdown_parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown_parser.add_render_rule(
        "table_open", lambda *_: '<div class="wide sheet" tabindex="0"><table class="prose">'
    )
    markdown_parser.add_render_rule("table_close", lambda *_: "</table></div>")
    markdown_parser.add_render_rule("image", _embed_picture)
    return markdown_parser


def _embed_picture(
    _: object, markdown_tokens: "Sequence[Token]", token_index: int, __: object, folder_by_name: Mapping[str, Path]
) -> str:
    """Return an image of Markdown as an embedded picture: a rendering rule of markdown-it, which passes the arguments.

    Args:
        _: the renderer, not used.
        markdown_tokens: tokens of the text.
        token_index: position of the image's token.
        __: options and environment, not used.
        folder_by_name: folder of each picture by the name of its file.
    """
    image_token = markdown_tokens[token_index]
    picture = Picture(folder_by_name["folder"] / str(image_token.attrs["src"]), image_token.content)
    return str(_make_environment().get_template("macros.html.j2").module.image(picture))  # type: ignore[attr-defined]
