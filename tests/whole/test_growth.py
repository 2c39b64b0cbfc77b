"""Tests of benchmarks/growth.py: it measures a run with a small population, and writes the table."""

from types import ModuleType

import pytest

from benchmark_scripts import load_script
from config_options import ROOT

FILE = ROOT / "benchmarks" / "growth.py"
COLUMNS = ["clients", "start-up, s", "ratio", "round, ms", "ratio", "peak memory, MB", "data, MB", "multiple"]


@pytest.fixture
def growth_script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("growth", monkeypatch)


def table_rows(page: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]


def test_the_script_measures_a_run_with_a_small_population(
    growth_script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth_script, "OVERRIDES", (*growth_script.OVERRIDES, "rounds=3", "eval.every=3", "cohort=10"))
    cost = growth_script.measure_run(100)
    assert cost.data == 100 * 10 * (20 * 4 + 8)
    assert 0 < cost.round_s < cost.start_s
    assert cost.peak > 1e8
    head, _, first = table_rows(growth_script.page([cost], load=0.0))
    assert head == COLUMNS
    assert first[0] == "100"
    assert first[2] == "1.0"
    assert first[4] == "1.00"


def test_ratios_compare_with_the_smallest_population(growth_script: ModuleType) -> None:
    small, large = (
        growth_script.Cost(1_000, 5.0, 0.04, 500_000_000, 1_000_000),
        growth_script.Cost(9_000, 6.0, 0.05, 516_000_000, 9_000_000),
    )
    table = table_rows(growth_script.page([small, large], load=3.1))
    assert table[3] == ["9,000", "6.0", "1.2", "50", "1.25", "516", "9", "2.00"]
    assert "other processes running (load average 3.1" in growth_script.page([small, large], load=3.1)


def test_the_committed_page_has_the_columns_of_the_script_and_readme_its_round_time() -> None:
    table = table_rows(FILE.with_suffix(".md").read_text())
    assert table[0] == COLUMNS
    assert all(len(row) == len(COLUMNS) for row in table)
    assert table[-1][0] == "1,000,000"
    assert f"It takes {table[-1][3]} ms if 100 of a million clients train" in (ROOT / "README.md").read_text()
