"""fedcohort diagnose, as typed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from config_options import ROOT
from fedcohort.command import diagnose
from fedcohort.errors import CheckpointError, OptionError

SMALL = ("clients=10", "cohort=5", "model=logreg", "selector.first=2", "logger=none", "callback.figures=null")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_train_a_run_as_long_as_two_probes_need(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ten clients in cohorts of five have 1.2 jobs after 2.4 rounds: probes in rounds 3 and 6, and 7 rounds.

    The first gap is small, so that no second probe is sent.
    """
    assert diagnose.main([*SMALL, "dataset=digits", "heterogeneity=iid"]) == 0
    text = capsys.readouterr().out
    assert "digits, 10 clients, cohorts of 5, 7 rounds of auto selection" in text
    page = Path(text.rsplit("Report: ", 1)[1].strip())
    numbers = json.loads((page.parent / "diagnosis.json").read_text())
    assert [probe["round"] for probe in numbers["label_noise"]["probes"]] == [4]
    assert text.count("`studies/") == sum(
        setting["distance"] <= numbers["near_settings"]["usual_distance"]
        for setting in numbers["near_settings"]["nearest"]
    )
    assert numbers["near_settings"]["nearest"][0]["study"] in text
    assert diagnose.main([str(page.parent)]) == 0
    assert "1 probe, with" in capsys.readouterr().out


def test_runs_that_cannot_be_diagnosed_are_rejected(folder: Path) -> None:
    with pytest.raises(OptionError, match="type a run's folder, or the options of a run"):
        diagnose.main([])
    with pytest.raises(OptionError, match="leave selector= out"):
        diagnose.main(["selector=flash", "dataset=digits"])
    with pytest.raises(CheckpointError, match="not the folder of a run"):
        diagnose.main([str(folder)])


def test_many_classes_are_diagnosed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report on 62 classes has 187 numbers, which are all in the run's table."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(62), 20)
    inputs = rng.normal(0, 0.1, (len(labels), 62)) + np.eye(62)[labels]
    frame = pd.DataFrame(inputs, columns=[f"x{i}" for i in range(62)]).assign(label=labels)
    frame.to_parquet(folder / "letters.parquet")
    data = ("dataset=folder", "dataset.path=letters.parquet", "dataset.test_share=0.2", "heterogeneity=noise_bimodal")
    assert diagnose.main([*SMALL, *data, "label_noise.share=0.4", "client.epochs=5"]) == 0
    text = capsys.readouterr().out
    assert "Not measured: the run's selector" not in text
    assert "2 probes, with" in text
