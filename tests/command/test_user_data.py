"""`fedcohort data PATH` prints what to decide and a command that runs as it stands."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedcohort.command import line, user_data
from run_harness import go
from yaml_words import ROOT


@pytest.mark.parametrize(
    ("word", "expected"),
    [("digits", False), ("mnist", False), ("../model/mlp", False), ("a/b", True), ("t.csv", True), ("~/t", True)],
)
def test_paths_are_distinguished_from_dataset_names(word: str, expected: bool) -> None:
    assert user_data.is_path(word) is expected


def test_commands_are_quoted_for_a_shell() -> None:
    words = ["dataset.path='my table.csv'", "dataset.label=x", "a=['$b']", "dataset.leave_out=[a,b]"]
    command = user_data.training_command(words)
    assert command.startswith("python train.py \"dataset.path='my table.csv'\" dataset.label=x ")
    assert shlex.split(command)[2:] == words


def test_the_printed_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    k = np.arange(240)
    frame = pd.DataFrame({"the age": 20.0 + k % 60, "sex": np.where(k % 2, "f", "m"), "site": k % 4})
    frame.assign(diagnosis=np.where(k % 3, "ill", "well")).to_csv(tmp_path / "my table.csv", sep=";", index=False)
    monkeypatch.chdir(ROOT)
    assert line.main(["data", str(tmp_path / "my table.csv"), f"paths.logs={tmp_path}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "label       dataset.label=diagnosis" in lines
    assert any(text.startswith("inputs      3: the age, sex (left out: site)") for text in lines)
    command = shlex.split(lines[-1])
    assert command[:4] == ["python", "train.py", "dataset=folder", f"dataset.path='{tmp_path}/my table.csv'"]
    words = [word for word in command[2:] if not word.startswith("paths.logs")]
    ran = go(tmp_path / "logs", *words, "rounds=1", "callback=none", "logger=none", small=False)
    assert len(ran.info.n_train) == 4
    assert ran.info.tags["categories"] == '{"sex": ["f", "m"]}'


def test_a_missing_path_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert line.main(["data", "nowhere/patients.csv"]) == 2
    assert "dataset.path=nowhere/patients.csv: there is no such file or folder" in capsys.readouterr().err
