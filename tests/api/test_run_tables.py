"""Data that Python holds are a table of `dataset=folder`: the same data are the same file, and the same run."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

from api.test_run import run
from fedcohort.api.run import replace_passed_data
from fedcohort.errors import OptionError

X, Y = load_digits(return_X_y=True)


def test_a_data_frame_is_trained_on(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:600]).add_prefix("pixel").assign(digit=Y[:600], site=np.arange(600) % 12)
    roles = {"dataset.label": "digit", "dataset.client": "site", "clients": None}
    result = run(tmp_path, dataset=frame, **roles)
    assert result.info.choices["dataset"] == "folder"
    assert len(result.info.n_train) == 12
    assert result.status == "finished"
    (table,) = (tmp_path / "tables").glob("*/train.parquet")
    assert pd.read_parquet(table).equals(frame)
    assert run(tmp_path, dataset=frame.copy(), resume=True, **roles).folder == result.folder


@pytest.mark.parametrize("shape", [(-1, 64), (-1, 1, 8, 8)])
def test_arrays_keep_their_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    options = replace_passed_data({"dataset": (X[:50].reshape(shape), Y[:50]), "paths": {"logs": tmp_path}})
    table = pd.read_parquet(Path(options["dataset.path"]) / "train.parquet")
    assert table["label"].tolist() == Y[:50].tolist()
    assert options.get("dataset.shape", [64]) == list(X[:50].reshape(shape).shape[1:])
    assert options["dataset.test_share"] == 0.2


@pytest.mark.parametrize("data", [(X[:5], Y[:4]), [Y, Y], (X[:0], Y[:0])])
def test_arrays_that_do_not_fit_are_rejected(data: Any) -> None:
    with pytest.raises(OptionError, match=r"dataset must be samples \[n, \.\.\.\] and labels \[n\], as \(x, y\), got"):
        replace_passed_data({"dataset": data})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame({"a": [object(), 1], "label": [0, 1]}), "can't be written as a Parquet table: .* column a "),
        (pd.DataFrame({"a": [10**400, 1], "label": [0, 1]}), "can't be written as a Parquet table: .*too large"),
        (pd.DataFrame([[1, 2, 0]], columns=["a", "a", "label"]), "can't be written .*Duplicate column names found"),
        ((X[:2], ["a", object()]), "can't be written as a Parquet table: .* column label "),
        (([[1, 2], [3]], [0, 1]), r"must be arrays \(x, y\), or lists that NumPy converts to them, got"),
    ],
)
def test_values_without_a_column_type_are_rejected(data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"dataset {message}"):
        replace_passed_data({"dataset": data, "paths": {"logs": tmp_path}})


@pytest.mark.parametrize("option", [{"paths.logs": 3}, {"paths": {"logs": object()}}])
def test_a_folder_that_is_no_path_is_rejected_with_data(option: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"paths\.logs must be a text that is not empty"):
        replace_passed_data({"dataset": (X[:5], Y[:5]), **option})


@pytest.mark.parametrize("data", [X, object(), torch.utils.data.TensorDataset(torch.zeros(2, 3))])
def test_unsupported_data_objects_are_rejected_with_the_supported_ones(data: Any) -> None:
    with pytest.raises(OptionError, match=r"dataset must be the name of a choice, a data frame, or a pair \(x, y\) of"):
        replace_passed_data({"dataset": data})


@pytest.mark.parametrize("option", ["digits", ["digits", "mnist"], {"limit": 3}, None])
def test_a_dataset_option_that_holds_no_data_is_unchanged(option: Any) -> None:
    assert replace_passed_data({"dataset": option}) == {"dataset": option}


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5], "label": [0, 1]}, index=pd.Index(["a", "b"], name="user"))
    options = replace_passed_data({"dataset": frame, "paths.logs": tmp_path})
    assert list(pd.read_parquet(Path(options["dataset.path"]) / "train.parquet")) == ["user", "x", "label"]
