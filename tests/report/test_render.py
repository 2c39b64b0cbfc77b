"""Templates and Markdown: values are text, whatever is in them."""

import pytest
from jinja2 import UndefinedError

from fedcohort.report.render import render, render_markdown

ATTACK = "<script>alert(1)</script>"


def test_html_templates_escape_values() -> None:
    page = render("layout.html.j2", title=ATTACK)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 2
    assert ".wide {" in page, "the stylesheet is inside"


def test_markdown_shows_raw_html_as_text() -> None:
    assert render_markdown(f"**a** `b` {ATTACK}\n\n- c") == (
        "<p><strong>a</strong> <code>b</code> &lt;script&gt;alert(1)&lt;/script&gt;</p>\n<ul>\n<li>c</li>\n</ul>\n"
    )
    assert "<a" not in render_markdown("[a](javascript:alert(1))")


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("layout.html.j2")
