"""The page of `make bench` says of its columns what its script says that they measure."""

import pytest

from scripts import load_script
from yaml_words import ROOT


def test_the_page_has_the_words_of_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_script("run", monkeypatch)
    assert run.MEASURED in (ROOT / "benchmarks" / "results.md").read_text()


def test_a_rate_is_the_fastest_round_but_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_script("run", monkeypatch)
    assert run.rate({"times": [0.1, 3.0, 2.0, 4.0]}) == 2.0
    assert "fastest round but the first" in " ".join(run.MEASURED.split())
