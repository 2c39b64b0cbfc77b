"""Tests of benchmarks/run.py: its page, its ratio and the order of its measurements."""

import subprocess
from pathlib import Path

import pytest

from benchmark_scripts import load_script
from config_options import ROOT


def test_the_committed_page_describes_columns_like_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_script("run", monkeypatch)
    assert run.COLUMNS_NOTE in (ROOT / "benchmarks" / "results.md").read_text()


def test_the_ratio_uses_the_fastest_round_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_script("run", monkeypatch)
    assert run.fastest_round_s({"times": [0.1, 3.0, 2.0, 4.0]}) == 2.0
    assert "fastest round, without the first" in " ".join(run.COLUMNS_NOTE.split())


def test_each_measurement_is_announced_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Announcements go to standard error, because standard output has only the page."""
    run = load_script("run", monkeypatch)
    announcements: list[list[str]] = []

    def fake_measurement(*args: object, **kwargs: object) -> dict[str, object]:
        announcements.append(capsys.readouterr().err.splitlines())
        return {"times": [2.0, 1.0], "first_s": 3.0, "losses": [0.5], "peak_mb": 100.0}

    def fake_tracked_run(*args: object) -> tuple[float, float]:
        fake_measurement()
        return 1.0, 2.0

    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "peers", lambda: [run.Peer(name, "peer.py", ()) for name in ("bare", "fedcohort")])
    monkeypatch.setattr(run, "run_peer", fake_measurement)
    monkeypatch.setattr(run, "time_tracked_run", fake_tracked_run)
    monkeypatch.setattr(subprocess, "run", fake_measurement)
    monkeypatch.setenv("FASHION_MNIST", "folder")
    run.main(["W1"], 2)
    expected_memory = ["W1, memory: bare", "W1, memory: fedcohort"]
    expected_repeats = [f"W1, repeat {n} of 2: {peer}" for n in (1, 2) for peer in ("bare", "fedcohort")]
    assert announcements[:6] == [[line] for line in (*expected_memory, *expected_repeats)]
    help_option, range_error = "--help", " ".join(run.RANGE_ERROR)
    expected_start_up = [
        f"start-up, five times: python train.py {arguments}" for arguments in (help_option, range_error)
    ]
    assert announcements[6:16] == [[expected_start_up[0]], *[[]] * 4, [expected_start_up[1]], *[[]] * 4]
    expected_tracking = [f"tracking, repeat {n} of 2: without MLflow, then with it" for n in (1, 2)]
    assert announcements[16:] == [[expected_tracking[0]], [], [expected_tracking[1]], []]
    assert capsys.readouterr().out == (tmp_path / "results.md").read_text()
