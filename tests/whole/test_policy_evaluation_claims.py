"""The benchmark of evaluate-policy runs, and the documentation equals its table."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark_scripts import load_script
from config_options import ROOT
from fedcohort.results import policy_evaluation

BENCHMARK = ROOT / "benchmarks" / "policy_evaluation.csv"


def test_the_benchmark_evaluates_one_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Play three rounds with 2 of 4 clients; the engine's steps must equal the mean update."""
    benchmark = load_script("policy_evaluation", monkeypatch)
    changes = {"clients=20": "clients=4", "rounds=20": "rounds=3"}
    values = {
        "RUN": tuple(changes.get(word, word) for word in benchmark.RUN),
        "RUN_SELECTORS": {"random": benchmark.RUN_SELECTORS["random"]},
        "COHORTS": np.array(list(combinations(range(4), 2))),
        "SCRIPT": tmp_path / "page.py",
        "N_CLIENTS": 4,
        "N_ROUNDS": 3,
        "N_REPLICATES": 4,
        "OTHERS_PER_RUN": 1,
    }
    for name, value in values.items():
        monkeypatch.setattr(benchmark, name, value)
    monkeypatch.setattr(policy_evaluation, "MIN_EFFECTIVE_SIZE", 2.0)
    benchmark.main(2)
    table = pd.read_csv(tmp_path / "page.csv")
    assert table["estimator"].tolist() == list(policy_evaluation.ESTIMATORS)
    assert set(table["other"]) == {"proportional"}
    assert set(table["rounds"]) == {6}
    assert table["bias"].abs().max() < 0.1 < table["own"].min()  # nats per step


def test_the_page_of_the_benchmark_has_the_rows_of_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    page = load_script("policy_evaluation", monkeypatch).write_page(pd.read_csv(BENCHMARK), 5)
    committed = BENCHMARK.with_suffix(".md").read_text()
    assert [line for line in page.splitlines() if line[:1] == "|" and line not in committed] == []


def test_the_documentation_has_the_coverage_of_the_shown_intervals() -> None:
    docs = " ".join((ROOT / "docs" / "policy_evaluation.md").read_text().split())
    table = pd.read_csv(BENCHMARK)
    for estimator, rows in table.groupby("estimator"):
        coverage = np.average(rows["coverage"], weights=1 - rows["refused"])
        sentence = f"| {estimator} | {rows['bias'].mean():+.4f} | {coverage:.0%} | {rows['coverage'].min():.0%} |"
        assert sentence in docs
        assert (rows["coverage"].min() >= 0.9) == (estimator in policy_evaluation.ESTIMATORS_WITH_INTERVAL)
    assert f"{len(table) // 4} pairs" in docs
