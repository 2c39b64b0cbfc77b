"""A user's own public inputs, read as the run's own are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from engine_harness import make_federation
from fedcohort.errors import DataError, OptionError
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.iid import Iid
from fedcohort.proxy.folder import Folder
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from folder_tables import make_folder_dataset as own
from run_harness import run_training

X = np.random.default_rng(5).normal(size=(8, 5)).astype(np.float32)


def public(path: Path, **columns: str | int) -> Folder:
    pd.DataFrame(X, columns=list("abcde")).assign(**columns).to_parquet(path / "train.parquet")
    return Folder(str(path), None, [], 1.0, None)


def test_rows_are_inputs_in_the_order_of_the_file(tmp_path: Path) -> None:
    x = public(tmp_path, where="text").inputs(make_federation(), 0)
    assert torch.equal(x, torch.from_numpy(X))
    assert len(replace(public(tmp_path), n=3).inputs(make_federation(), 0)) == 3


def test_named_columns_follow_the_runs_order(tmp_path: Path) -> None:
    """The run's e, d, c, b, a are the file's last to first; with other names a sample is what stands there."""
    for part in ("train", "test"):
        rows = np.random.default_rng(len(part) + 9).normal(size=(40, 5))
        pd.DataFrame(rows, columns=list("edcba")).assign(label=np.arange(40) % 2).to_csv(tmp_path / f"{part}.csv")
    run = build_federation(
        own(tmp_path).load(0), SplitOptions(Iid(), NoNoise(), seed=0, clients=4, server_val=0.1, client_val=0.1)
    ).to("cpu")
    (tmp_path / "public").mkdir()
    folder = public(tmp_path / "public")
    assert torch.equal(folder.inputs(run, 0), torch.from_numpy(X[:, ::-1].copy()))
    assert torch.equal(folder.inputs(replace(run, columns=tuple("edcbx")), 0), torch.from_numpy(X))


def test_inputs_are_standardised_like_the_runs(tmp_path: Path) -> None:
    mean, sd = np.arange(5, dtype=np.float32), np.array([1, 2, 3, 4, 5], np.float32)
    x = replace(public(tmp_path), scale=2.0).inputs(replace(make_federation(), feature_moments=(mean, sd)), 0)
    assert torch.allclose(x, torch.from_numpy((X / 2 - mean) / sd))


def test_invalid_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"^proxy.path: .*has 6 numbers \(a, b, c, d, e, label\), but one of dataset=toy has 5"
    ):
        public(tmp_path, label=0).inputs(make_federation(), 0)
    assert len(replace(public(tmp_path, label=0), leave_out=["label"]).inputs(make_federation(), 0)) == 8
    with pytest.raises(DataError, match=r"^proxy.path=.*nowhere: there is no such file or folder"):
        replace(public(tmp_path), path=str(tmp_path / "nowhere")).inputs(make_federation(), 0)
    with pytest.raises(OptionError, match=r"^leave_out must be a list of texts"):
        replace(public(tmp_path), leave_out="id")
    tested = pd.DataFrame(make_federation().server_test.x.numpy(), columns=list("abcde"))
    tested.to_parquet(tmp_path / "train.parquet")
    with pytest.raises(DataError, match=r"^proxy=folder \(.*train.parquet\): \d+ inputs are also in the run's test"):
        Folder(str(tmp_path), None, [], 1.0, None).inputs(make_federation(), 0)


def test_a_run_with_a_proxy_folder_completes(tmp_path: Path) -> None:
    """A flat row of the folder takes the shape of the run's images."""
    columns = {f"p{i}": np.random.default_rng(i).random(20) for i in range(64)}
    pd.DataFrame(columns).to_csv(tmp_path / "train.csv", index=False)
    overrides = ("agg=feddf", "agg.steps=3", "proxy=folder", f"proxy.path={tmp_path}")
    assert run_training(tmp_path / "logs", *overrides, "rounds=1").info.choices["proxy"] == "folder"
    with pytest.raises(OptionError, match=r"^proxy\.scale must be a number in \(0, inf\), got 0$"):
        run_training(tmp_path / "none", *overrides, "proxy.scale=0")


def test_a_file_that_is_no_table_is_named_by_the_option_of_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(DataError, match=r"^proxy.path: .*train.csv can't be read"):
        Folder(str(tmp_path), None, [], 1.0, None).inputs(make_federation(), 0)
