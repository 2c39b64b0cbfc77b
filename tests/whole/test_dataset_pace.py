"""Tests of benchmarks/dataset_pace.py: it measures a small dataset, and writes and updates the table."""

import math
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmark_scripts import load_script
from command_harness import run_command
from config_options import CONFIGS


def test_the_script_measures_a_small_dataset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    run_process = subprocess.run

    def run(command_line: list[str], **options: Any) -> object:
        """Run train.py in this process, which has imported its modules; memory is measured in a new process."""
        if command_line[1].endswith("train.py"):
            return run_command(*command_line[2:])
        return run_process(command_line, **options)

    monkeypatch.setattr(pace.subprocess, "run", run)
    cost = pace.measure("digits", ("clients=20", "split.limit=300", "cohort=2"), None, rounds=3)
    assert cost.clients == 20
    assert 0.8 * 300 < cost.samples < 300
    assert cost.tensor_bytes > 360 * (64 * 4 + 8)  # the test part is not limited
    assert cost.round_s > 0
    assert cost.peak_bytes >= 0
    pace.write_files([cost], tmp_path / "pace.csv")
    *_, last_line = (tmp_path / "pace.md").read_text().splitlines()
    cells = [cell.strip() for cell in last_line.strip("|").split("|")]
    assert cells[:3] == ["`digits`", "`clients=20 split.limit=300 cohort=2`", "20"]
    assert len(cells) == 10
    assert pace.read_costs(tmp_path / "pace.csv") == [cost]


def test_a_new_row_replaces_only_the_row_with_the_same_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    digits = pace.Cost("digits", "", False, 50, 1216, 0.1, 100, 150, 0.0, "2026-01-01", "0123456789")
    reddit = replace(digits, dataset="reddit", overrides="clients=null", generated=True, round_s=2.0)
    full_size = replace(reddit, overrides="clients=null dataset.users=1", round_s=math.nan)
    pace.write_files([reddit, full_size, digits], file := tmp_path / "pace.csv")
    pace.write_files([*pace.read_costs(file), replace(digits, round_s=0.2)], file)
    first, second, third = pace.read_costs(file)
    assert (first, second) == (replace(digits, round_s=0.2), reddit)
    assert math.isnan(third.round_s)
    *_, first_line, second_line, third_line = (tmp_path / "pace.md").read_text().splitlines()
    assert first_line.startswith("| `digits` |  | 50 | 1,216 | 300.0 | 0.0 | 0.0 | 1.50 |")
    assert second_line.startswith("| `reddit`, generated | `clients=null` | 50 | 1,216 | 30.0 |")
    assert third_line.startswith("| `reddit`, generated | `clients=null dataset.users=1` | 50 | 1,216 |  |")


def test_every_bundled_dataset_has_a_suitable_model(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    assert set(pace.MODELS_BY_DATASET) == {path.stem for path in (CONFIGS / "dataset").glob("*.yaml")} - {"folder"}


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("imagenet=data", "unknown dataset imagenet: choose from digits, "),
        ("mnist", "mnist needs the folder of its files: type mnist=FOLDER"),
        ("mnist=generated", "mnist cannot be generated, only emnist, "),
    ],
)
def test_the_script_rejects_an_argument_that_cannot_be_measured(
    argument: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = load_script("dataset_pace", monkeypatch)
    with pytest.raises(SystemExit, match=message):
        pace.main([argument])
