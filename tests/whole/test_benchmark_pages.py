"""The pages in benchmarks/ equal their tables, and other pages cite them correctly."""

import re
from pathlib import Path

import pandas as pd
import pytest

from benchmark_scripts import load_script
from config_options import ROOT
from whole import claims

BENCHMARKS = ROOT / "benchmarks"


def read_text(path: Path) -> str:
    """Return a page without line breaks."""
    return " ".join(path.read_text().split())


def read_rows(name: str) -> list[list[str]]:
    """Return the cells of all rows of a page's tables, without the headers and the lines under them."""
    lines = [line for line in (BENCHMARKS / name).read_text().splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    heads = {i for i, row in enumerate(rows) if all(set(cell) <= set(":- ") for cell in row)}
    return [row for i, row in enumerate(rows) if i not in heads and i + 1 not in heads]


def test_the_page_of_datasets_is_that_of_its_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    pace.write_files(pace.read_costs(BENCHMARKS / "dataset_pace.csv"), tmp_path / "pace.csv")
    assert (tmp_path / "pace.md").read_text() == (BENCHMARKS / "dataset_pace.md").read_text()


def test_the_page_of_diagnoses_is_that_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    page = load_script("diagnoses", monkeypatch).write_page(pd.read_csv(BENCHMARKS / "diagnoses.csv"), 3)
    committed = (BENCHMARKS / "diagnoses.md").read_text()
    today, date = (re.findall(r"\d{4}-\d\d-\d\d", text)[0] for text in (page, committed))
    assert page.replace(today, date) == committed


def test_percentages_of_noticed_faults_are_those_of_their_counts() -> None:
    rows = [row for row in read_rows("planted_faults.md") if "%" in row[2]]
    assert len(rows) > 30
    for _, planted, noticed, equivalent, _ in rows:
        n_noticeable = int(planted) - (int(equivalent) if "that can be noticed" in noticed else 0)
        count, percentage = noticed.split(" %")[0].split(" (")
        assert f"{100 * int(count) / n_noticeable:.1f}" == percentage


def test_ratios_on_a_gpu_are_those_of_the_page() -> None:
    """The vectorised engine in float32; the other rows are of the sequential engine or of a lower precision."""
    ratios = []
    for row in read_rows("gpu.md"):
        if row[1] == "fedcohort, `engine=auto` (vectorised)":
            ratios += [float(ratio) for ratio in row[-1].split(", ")]
        elif row[1] == "fedcohort, float32":
            ratios += [float(ratio) for ratio in (row[3], row[5]) if ratio != "-"]
    assert len(ratios) == 8
    text = f"{min(ratios):.2f} to {max(ratios):.2f} of a bare"
    assert text in read_text(ROOT / "README.md")
    assert text in read_text(ROOT / "docs" / "trust.md")
    runs = claims.read_results("auto_networks")["wall_s"]
    assert f"A run took {runs.min():.0f} to {runs.max():.0f} seconds, {runs.mean():.0f} on average" in read_text(
        BENCHMARKS / "gpu.md"
    )
    assert f"in {runs.min():.0f} to {runs.max():.0f} s each" in read_text(ROOT / "docs" / "trust.md")


def test_the_time_of_reduced_experiments_is_that_of_the_page() -> None:
    rows = read_rows("small_forms.md")
    minutes = [float(row[5]) for row in rows]
    assert (len(rows), sum(not row[6] for row in rows)) == (11, 7), "runs on generated data have no accuracy"
    assert (min(minutes) <= 0.5, round(max(minutes))) == (True, 12)
    assert (
        "took [half a minute to 12 minutes](../benchmarks/small_forms.md), seven of the eleven on generated data"
    ) in read_text(ROOT / "docs" / "composing.md")
