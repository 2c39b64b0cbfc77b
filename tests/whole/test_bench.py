"""The page of `make bench` says of its columns what its script says that they measure."""

import subprocess
from pathlib import Path

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


def test_each_thing_is_named_before_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error: the page alone is on standard output."""
    run = load_script("run", monkeypatch)
    said: list[list[str]] = []

    def measure(*args: object, **kwargs: object) -> dict[str, object]:
        said.append(capsys.readouterr().err.splitlines())
        return {"times": [2.0, 1.0], "first_s": 3.0, "losses": [0.5], "peak_mb": 100.0}

    def track(*args: object) -> tuple[float, float]:
        measure()
        return 1.0, 2.0

    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setattr(run, "peers", lambda: [run.Peer(name, "peer.py", ()) for name in ("bare", "fedcohort")])
    monkeypatch.setattr(run, "once", measure)
    monkeypatch.setattr(run, "tracked", track)
    monkeypatch.setattr(subprocess, "run", measure)
    monkeypatch.setenv("FASHION_MNIST", "folder")
    run.main(["W1"], 2)
    memory = ["W1, memory: bare", "W1, memory: fedcohort"]
    paces = [f"W1, repeat {n} of 2: {peer}" for n in (1, 2) for peer in ("bare", "fedcohort")]
    assert said[:6] == [[line] for line in (*memory, *paces)]
    helped, mistaken = "--help", " ".join(run.MISTAKE)
    started = [f"start-up, five times: python train.py {words}" for words in (helped, mistaken)]
    assert said[6:16] == [[started[0]], *[[]] * 4, [started[1]], *[[]] * 4]
    tracked = [f"tracking, repeat {n} of 2: without MLflow, then with it" for n in (1, 2)]
    assert said[16:] == [[tracked[0]], [], [tracked[1]], []]
    assert capsys.readouterr().out == (tmp_path / "results.md").read_text()
