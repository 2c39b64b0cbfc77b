"""The benchmark of a round's pace runs with few clients, and its page says what it measured."""

import pytest

from scripts import load_script
from yaml_words import ROOT


def test_few_clients_are_paced_and_the_page_has_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = load_script("pace", monkeypatch)
    found = pace.measure(clients=200, cohort=20)
    assert all(0 < median <= most for median, most in found.values())
    table = [line for line in pace.page({**found, ("trace", "fixed"): (61.0, 70.0)}).splitlines() if line[:1] == "|"]
    assert table[2] == "| `trace` | `fixed` | 61.0 (over) | 70.0 |"
    stored = [line for line in (ROOT / "benchmarks" / "pace.md").read_text().splitlines() if line[:1] == "|"]
    assert [line.split("|")[1:3] for line in table] == [line.split("|")[1:3] for line in stored]
