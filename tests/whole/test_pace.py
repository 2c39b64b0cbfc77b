"""Test of benchmarks/pace.py: it measures a few clients, and its page has a row per condition."""

from functools import partial

import pytest

from benchmark_scripts import load_script
from config_options import ROOT


def test_the_script_measures_a_few_clients_and_writes_a_row_per_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = load_script("pace", monkeypatch)
    monkeypatch.setattr(pace, "ROUNDS", 5)
    monkeypatch.setattr(pace, "OVERRIDES", [*pace.OVERRIDES, "rounds=5"])
    monkeypatch.setattr(pace, "N_LOSS_LISTS", 10)
    monkeypatch.setattr(pace, "time_sample_choice", partial(pace.time_sample_choice, 20))
    times = pace.measure(clients=200, cohort=20)
    assert all(0 < median <= largest for median, largest in times.values())
    steps = pace.time_steps(clients=300, in_flight=100)
    assert all(0 < median <= largest for median, largest in steps.values())
    page = pace.page({**times, ("trace", "fixed"): (61.0, 70.0)}, steps)
    table = [line for line in page.splitlines() if line[:1] == "|"]
    assert table[2] == "| `trace` | `fixed` | 61.0 (over) | 70.0 |"
    committed_rows = [line for line in (ROOT / "benchmarks" / "pace.md").read_text().splitlines() if line[:1] == "|"]
    assert [line.split("|")[1:3] for line in table] == [line.split("|")[1:3] for line in committed_rows]
