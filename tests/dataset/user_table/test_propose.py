"""What is proposed for a user's files, and that the proposal loads."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedcohort.dataset.user_table.propose import propose_options
from fedcohort.errors import DataError
from folder_tables import make_folder_dataset


def patients(n: int = 240) -> pd.DataFrame:
    k = np.arange(n)
    frame = pd.DataFrame({"patient_id": k, "age": 20.0 + k % 60, "sex": np.where(k % 2, "f", "m")})
    frame["visited"] = pd.to_datetime("2021-01-01") + pd.to_timedelta(k, unit="D")
    frame["site"] = [f"clinic {c}" for c in k % 6]
    frame["diagnosis"] = np.where(k % 3 == 0, "ill", "well")
    frame["note"] = [f"note {i}" for i in k]
    frame.loc[5, "age"] = np.nan
    return frame


def load(path: Path, options: dict[str, Any]) -> Any:
    names = {name.removeprefix("dataset."): value for name, value in options.items() if name.startswith("dataset.")}
    return make_folder_dataset(path, **names).load(0)


def test_everything_about_a_table_is_decided_at_once(tmp_path: Path) -> None:
    patients().to_csv(tmp_path / "patients.csv", sep=";", decimal=",", index=False)
    proposal = propose_options(str(tmp_path), {})
    assert proposal.options == {
        "dataset.label": "diagnosis",
        "dataset.leave_out": ["patient_id"],
        "dataset.client": "site",
        "cohort": 3,
        "dataset.test_share": 0.2,
        "dataset.categories": ["sex"],
        "dataset.dates": ["visited"],
        "dataset.standardise": True,
        "dataset.missing": "mean",
    }
    assert proposal.file_descriptions == [
        f"{tmp_path}/patients.csv: 240 rows, patients.csv is the training table, columns separated by semicolons, "
        "decimal commas"
    ]
    assert ("age", "number", "1 cells empty") in proposal.column_descriptions
    assert load(tmp_path, proposal.options).columns == ("age", "sex=f", "sex=m", "visited")


def test_nothing_is_proposed_for_typed_options(tmp_path: Path) -> None:
    patients().to_csv(tmp_path / "patients.csv", index=False)
    options = propose_options(str(tmp_path), {"dataset.label": "sex", "cohort": "2", "dataset.missing": "drop"}).options
    assert not {"dataset.label", "cohort", "dataset.missing"} & set(options)
    assert options["dataset.categories"] == ["diagnosis"]
    assert options["dataset.client"] == "site"


@pytest.mark.parametrize(("rows", "pooled"), [(2, True), (30, False)])
def test_small_clients_are_pooled_or_left_out(tmp_path: Path, rows: int, pooled: bool) -> None:
    """Of 120 clients of two rows all are pooled; of eight of 30 rows and one of three, the one is left out."""
    frame = patients(243 if rows == 30 else 240).assign(site=lambda f: [f"s{k // rows}" for k in range(len(f))])
    frame.to_csv(tmp_path / "train.csv", index=False)
    options = propose_options(str(tmp_path), {}).options
    assert options["dataset.min_client_samples"] == 10
    assert options.get("dataset.pool_small", False) is pooled
    assert np.bincount(load(tmp_path, options).train_owner).max() >= 10


def test_labels_that_skip_numbers_get_their_number_of_classes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(40) / 40, "label": 1 + np.arange(40) % 3})
    for part in ("train", "test"):
        frame.to_csv(tmp_path / f"{part}.csv", index=False)
    options = propose_options(str(tmp_path), {}).options
    assert options == {"dataset.n_classes": 4, "clients": 2, "cohort": 1}
    assert load(tmp_path, options).n_classes == 4


def test_lists_and_long_tables_get_their_options(tmp_path: Path) -> None:
    lists: dict[str, Any] = {"ax": [[1.0, 2.0]] * 40, "ay": [[3.0, 4.0]] * 40, "label": [0, 1] * 20}
    pd.DataFrame(lists).to_parquet(tmp_path / "train.parquet")
    assert propose_options(str(tmp_path), {}).options["dataset.features"] == ["ax", "ay"]
    (tmp_path / "train.parquet").unlink()
    k = np.arange(400)
    steps = pd.DataFrame({"rec": k // 40, "t": k % 40, "a": np.sin(k), "activity": np.where(k // 40 % 2, "sit", "run")})
    steps.to_csv(tmp_path / "walks.tsv", sep="\t", index=False)
    options = propose_options(str(tmp_path), {}).options
    assert (options["dataset.series"], options["dataset.window"]) == ("rec", 20)
    assert options["dataset.leave_out"] == ["t"]
    assert load(tmp_path, options).train_x.shape[1:] == (1, 20)


def test_a_table_without_a_column_for_labels_is_rejected(tmp_path: Path) -> None:
    pd.DataFrame({"x": np.arange(40) / 40}).to_csv(tmp_path / "train.csv", index=False)
    with pytest.raises(DataError, match=r"no column can hold labels .*: name one with dataset.label=NAME"):
        propose_options(str(tmp_path), {})
