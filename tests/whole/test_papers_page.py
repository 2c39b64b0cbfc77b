"""benchmarks/papers/README.md: it is what its script writes, and each section says what there was to win."""

from pathlib import Path

import pytest

from scripts import load_script
from yaml_words import ROOT

PAPERS = ROOT / "benchmarks" / "papers"
SCRIPTS = sorted(path.stem for path in PAPERS.glob("*.sh") if path.stem != "setup")


def test_the_page_is_what_its_script_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (PAPERS / "README.md").read_text() == load_script("papers/page", monkeypatch).page()


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_section_says_what_there_was_to_win_or_that_nobody_knows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = load_script("papers/page", monkeypatch)
    text = page.section(name)
    start = text.split("\n\n", 3)[2]  # after the heading and what the script does
    assert name in page.ORDER
    assert start.startswith(("[What there was to win](", "**What there was to win**", "Nothing was to be won here"))


def test_by_hand_comes_before_the_tables_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = load_script("papers/page", monkeypatch)
    monkeypatch.setattr(page, "HERE", tmp_path)
    (tmp_path / "mine.sh").write_text("#!/bin/sh\n# What it does.\ntable word rows=agg\n")
    (tmp_path / "mine" / "word").mkdir(parents=True)
    for name, text in (("gap.md", "the gap"), ("notes.md", "notes"), ("more.md", "more"), ("word/table.md", "### t")):
        (tmp_path / "mine" / name).write_text(text + "\n")
    assert page.section("mine") == "## mine\n\nWhat it does.\n\nthe gap\n\nnotes\n\n### word: t\n\nmore"
