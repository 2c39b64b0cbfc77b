"""Whole runs on a user's own data: what is trained, what is measured, and what the run says of it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from config_options import ROOT
from fedcohort.command import line
from fedcohort.dataset.user_table.rows import draw_test_rows
from fedcohort.record import metadata
from fedcohort.record.overview import list_run_facts
from run_harness import FinishedRun, run_training

DATA = ("dataset=folder", "clients=null", "cohort=2", "rounds=1", "client.epochs=1")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four sites of 20 training rows and the classes sick and well; the test rows are of the sites 2 to 5."""
    rng = np.random.default_rng(0)
    for part, n, first in (("train", 80, 0), ("test", 40, 2)):
        x = rng.normal(size=(n, 3))
        frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(site=first + np.arange(n) % 4)
        frame.assign(label=np.where(x[:, 0] > 0, "well", "sick")).to_csv(tmp_path / f"{part}.csv", index=False)
    return tmp_path


def run(data: Path, *overrides: str) -> FinishedRun:
    return run_training(data / "logs", *DATA, f"dataset.path={data}", *overrides)


def test_the_client_column_defines_the_clients_without_label_noise(data: Path) -> None:
    """A user's data are not partitioned or disturbed, whatever column names the clients."""
    trained_run = run(data, "dataset.client=site")
    assert (len(trained_run.info.n_train), trained_run.info.n_train.sum()) == (
        4,
        80 - 4 - 4 * 2,
    )  # server_val, two samples each
    assert not trained_run.info.noise_rate.any()
    assert (trained_run.info.choices["heterogeneity"], trained_run.info.choices["partition"]) == ("natural", "natural")
    assert trained_run.info.labels == {"0": "sick", "1": "well"}
    rows = dict(list_run_facts(trained_run.info))
    assert "heterogeneity=natural" in rows["run"]
    assert rows["labels"] == "0 sick, 1 well"
    note = "20 test samples of 2 owners without training samples are held by the server only"
    assert rows["inputs"] == f"3: a, b, c (left out: site); {note}"
    assert np.isfinite(trained_run.last.clients["test_acc"]).tolist() == [False, False, True, True]


def test_a_run_prints_the_clients_names_of_the_data(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of a run have the ids only. Client names are the values of a column in sorted order."""
    for part in ("train", "test"):
        frame = pd.read_csv(data / f"{part}.csv")
        site_names = frame["site"].map({0: "Ulm", 1: "[b]", 2: "Graz", 3: "Basel", 4: "Nice", 5: "Oslo"})
        frame.assign(site=site_names).to_csv(data / f"{part}.csv", index=False)
    trained_run = run(data, "dataset.client=site", "clients=3")
    metadata.save_info(replace(trained_run.info, folder=data))
    names = metadata.load_info(data).client_names
    assert names is not None
    assert names.tolist() == ["Basel", "Graz", "Ulm"]  # of test rows alone: Nice, Oslo; the fourth, [b], takes no part
    overrides = [f"dataset.path={data}", f"paths.logs={data / 'logs'}"]
    assert line.main(["data", "folder", *overrides, "dataset.client=site", "clients=null"]) == 0
    shown_lines = [text.split()[:2] for text in capsys.readouterr().out.splitlines()[-5:-1]]
    assert shown_lines == [["0", "Basel"], ["1", "Graz"], ["2", "Ulm"], ["3", "[b]"]]
    assert run(data, "clients=5", "dataset.leave_out=[site]").info.client_names is None


def test_without_a_client_column_data_are_split_iid_without_label_noise(data: Path) -> None:
    trained_run = run(data, "clients=5", "dataset.leave_out=[site]")
    assert (len(trained_run.info.n_train), trained_run.info.noise_rate.any()) == (5, False)
    assert (trained_run.info.choices["heterogeneity"], trained_run.info.choices["partition"]) == ("iid", "iid")


def test_test_rows_of_other_clients_are_only_on_the_server(data: Path) -> None:
    """If only the server has test rows, there are no client accuracies; losses are on the clients' training data."""
    trained_run = run(data, "dataset.client=site", "dataset.test=server")
    assert {"test/acc", "clients/jain", "clients/loss_mean"} <= trained_run.last.metrics.keys()
    assert not [name for name in trained_run.last.metrics if name.startswith("clients/acc")]
    assert np.isnan(trained_run.last.clients["test_acc"]).all()
    assert trained_run.info.tags["inputs"].endswith("; only the server holds test rows: no metrics clients/acc_*")


def test_the_example_of_the_data_page_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "docs" / "data.md").read_text().partition("# Your own dataset")[2]
    code, command = re.findall(r"<<'PY'\n(.*?)\nPY\npython train.py (.*?)\n", section, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    trained_run = run_training(
        tmp_path / "logs", *command.split(), "rounds=1", "callback=none", "logger=none", small=False
    )
    assert (len(trained_run.info.n_train), trained_run.info.noise_rate.any()) == (20, False)
    assert trained_run.info.labels == {"0": "sick", "1": "well"}


def test_test_rows_that_small_clients_lack_are_not_cut_from_a_large_client() -> None:
    """Clients of 6 keep 4 rows. Of the 2000 of the large one a fifth are test rows, not a quarter in their place."""
    owner = np.r_[np.repeat(np.arange(200), 6), np.full(2000, 200)]
    labels = np.random.default_rng(0).integers(0, 10, len(owner))
    groups = owner * 10 + labels
    for seed in range(3):
        rows = draw_test_rows(labels, owner, 0.2, np.random.default_rng(seed))
        assert 400 - 10 <= (owner[rows] == 200).sum() <= 400 + 10
        test_counts, group_sizes = np.bincount(groups[rows], minlength=2010), np.bincount(groups)
        assert (test_counts <= 0.2 * group_sizes + 1).all()
