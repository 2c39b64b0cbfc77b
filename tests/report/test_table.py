"""One DataFrame as Markdown, HTML, LaTeX and CSV."""

import io

import pandas as pd
import pytest

from fedcohort.report.table import Table

NAMES = ["<script>x</script>", "a|b *c* `d`", "ucb_cs & 50 %"]


@pytest.fixture
def table() -> Table:
    frame = pd.DataFrame({"selector": NAMES, "accuracy, %": [12.3456789, float("nan"), 50.0]})
    return Table(frame, "Mean of 3 seeds_", {"accuracy, %": ".1f"})


def test_tables_format_numbers_and_missing_values(table: Table) -> None:
    assert table.headings == ["selector", "accuracy, %"]
    assert [row[1] for row in table.rows] == ["12.3", "–", "50.0"]


def test_csv_holds_all_columns_in_full_precision(table: Table) -> None:
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(table.csv())), table.frame)


def test_a_name_is_text_in_markdown_and_html(table: Table) -> None:
    text = table.markdown().splitlines()
    assert text[2] == r"| \<script>x\</script> | 12.3 |"
    assert text[3] == r"| a\|b \*c\* \`d\` | – |"
    assert text[4] == "| ucb_cs & 50 % | 50.0 |"
    html = table.html()
    assert "<script" not in html
    assert "&lt;script&gt;x&lt;/script&gt;" in html
    assert '<th scope="row">ucb_cs &amp; 50 %</th><td>50.0</td>' in html
    assert "<caption>Mean of 3 seeds_</caption>" in html


def test_latex_is_a_booktabs_table_with_a_caption(table: Table) -> None:
    text = table.latex()
    assert r"\caption{Mean of 3 seeds\_}" in text
    assert r"UCB-CS \& 50 \% & 50.0 \\" in text
    assert r"\begin{tabular}{lr}" in text
    assert r"\toprule" in text
    assert "$<$script$>$x$<$/script$>$" in text


def test_latex_has_published_names_of_methods() -> None:
    frame = pd.DataFrame({"method": ["3. powd_mean", "oracle_clean ‡", "mine"], "powd_mean": ["flash"] * 3})
    lines = Table(frame, "").latex().split(r"\midrule")[1].splitlines()[1:4]
    assert lines == [rf"{name} & flash \\" for name in ("3. pow-d, plain mean", "Clean oracle ‡", "mine")]


def test_latex_has_symbols_of_its_own_without_further_packages() -> None:
    """LaTeX ends with an error at the characters ▲ and ▼, and prints `$<$=` as two symbols."""
    frame = pd.DataFrame(
        {"method": ["a ‡ ▲"], "times as fast": ["<= 0.95 [0.75, 1.20]"], "bound": [">=1.9▼"], "p": ["< 1"]}
    )
    row = Table(frame, "").latex().split(r"\midrule")[1].splitlines()[1]
    assert row == (r"a ‡ $\bigtriangleup$ & $\leq$ 0.95 [0.75, 1.20] & $\geq$1.9$\bigtriangledown$ & $<$ 1 \\")


def test_long_texts_are_folded() -> None:
    frame = pd.DataFrame({"a": ["x"], "text": ["a sentence of more than thirty letters"], "numbers": ["1 " * 20]})
    assert Table(frame, "").text_columns == {1}
    assert '<td class="text">a sentence' in Table(frame, "").html()


def test_an_empty_table_has_its_heading() -> None:
    empty = Table(pd.DataFrame({"a": [], "b": []}), "nothing")
    assert empty.markdown() == "| a | b |\n| --- | ---: |"
    assert "nothing" in empty.latex()
