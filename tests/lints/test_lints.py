"""Each rule finds a planted violation and leaves a plain example alone."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lints import __main__, prose, rules
from lints.rules import Hit, Source
from lints.subject import is_subject

PLAIN = '''"""Count the clients."""


def count(clients: list[int]) -> int:
    """Return the number of clients."""
    return len(clients)
'''
LONG = "The server " + "and the client " * 10 + "train."
PLANTED: dict[Callable[[Source], Iterator[Hit]], str] = {
    rules.pronoun_names: PLAIN + "\nfound = count([1])\n",
    rules.docstring_prose: PLAIN.replace("Return the number of clients.", "Whoever is there, nobody knows."),
    rules.message_prose: PLAIN + '\nMESSAGE = f"the run {count([])} goes on with others"\n',
    rules.long_files: PLAIN + "\n" * rules.MAX_FILE_LINES,
    rules.long_functions: "def work() -> None:\n" + "    work()\n" * rules.MAX_FUNCTION_LINES,
    rules.many_parameters: "def work(a, b, c, d, e, f, g, h): ...\n",
}


def parse_source(text: str) -> Source:
    return Source(Path("example.py"), text, ast.parse(text))


@pytest.mark.parametrize("rule", PLANTED, ids=lambda rule: rule.__name__)
def test_a_planted_violation_is_found_and_plain_code_has_none(rule: Callable[[Source], Iterator[Hit]]) -> None:
    assert len(list(rule(parse_source(PLAIN)))) == 0
    assert len(list(rule(parse_source(PLANTED[rule])))) >= 1


def test_the_language_rules_read_tests_and_benchmarks(tmp_path: Path) -> None:
    for folder in ("src", *__main__.OTHER_FOLDERS):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").write_text("A bench.\n")
    (tmp_path / "src" / "plain.py").write_text(PLAIN)
    assert not any(__main__.count_all(tmp_path)[f"{name}, outside src"] for name in rules.LANGUAGE_RULES)
    (tmp_path / "benchmarks" / "unclear.py").write_text(PLANTED[rules.pronoun_names])
    (tmp_path / "tests" / "unclear.py").write_text(PLANTED[rules.docstring_prose])
    hits = __main__.count_all(tmp_path)
    assert [len(hits[f"{name}, outside src"]) >= 1 for name in rules.LANGUAGE_RULES] == [True, True]
    assert hits["names that are pronouns or participles"] == []


def test_a_wrapped_statement_is_one_logical_line_and_docstrings_and_comments_are_none() -> None:
    # def, return and the wrapped assignment
    assert len(list(rules.logical_lines(parse_source(PLAIN + "\n# a comment\nsizes = [\n    1,\n]\n")))) == 3


@pytest.mark.parametrize(
    "phrase", ["Nobody is late.", "who is late is dropped", "It goes on anew.", "any word will do", LONG]
)
def test_unclear_phrases_and_long_sentences_are_found(phrase: str) -> None:
    assert prose.violations(f"A run ends. {phrase}")


def test_a_sentence_of_thirty_words_is_plain_and_one_more_is_not() -> None:
    assert prose.violations(" ".join(["train"] * prose.MAX_WORDS) + ".") == []
    assert len(prose.violations(" ".join(["train"] * (prose.MAX_WORDS + 1)) + ".")) == 1


def test_markdown_is_read_without_code_tables_and_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Nobody\n\n| whoever |\n\n```\ngoes on\n```\n\nThe option `anew` is plain.\n")
    assert list(rules.markdown_prose(page)) == []
    page.write_text("Nobody reads this.\n")
    assert len(list(rules.markdown_prose(page))) == 1


def test_a_count_above_its_ceiling_fails_and_a_new_rule_has_the_ceiling_0() -> None:
    assert __main__.compare({"long files": 5}, {"long files": 5}) == []
    assert __main__.compare({"long files": 6}, {"long files": 5})[0].startswith("long files: 6, and the ceiling is 5")
    assert __main__.compare({"new": 1}, {})[0].startswith("new: 1, and the ceiling is 0")


@pytest.mark.parametrize(
    ("subject", "is_valid"),
    [
        ("Fix double charge of concurrent signals", True),
        ("F" * 72, True),
        ("F" * 73, False),
        ("fix a double charge", False),
        ("Fix a double charge.", False),
    ],
)
def test_invalid_commit_subjects_are_found(subject: str, is_valid: bool) -> None:
    assert is_subject(subject) is is_valid
