"""Data that Python holds are a table of `dataset=folder`: the same data are the same file, and the same run."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from api.test_run import run
from fedcohort.api.tables import replace_data
from fedcohort.errors import OptionError

X, Y = load_digits(return_X_y=True)


def test_a_data_frame_is_trained_on(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:600]).add_prefix("pixel").assign(digit=Y[:600], site=np.arange(600) % 12)
    named = {"dataset.label": "digit", "dataset.client": "site", "clients": None}
    result = run(tmp_path, dataset=frame, **named)
    assert result.info.choices["dataset"] == "folder"
    assert len(result.info.n_train) == 12
    assert result.status == "finished"
    (table,) = (tmp_path / "tables").glob("*/train.parquet")
    assert pd.read_parquet(table).equals(frame)
    assert run(tmp_path, dataset=frame.copy(), resume=True, **named).folder == result.folder


@pytest.mark.parametrize("shape", [(-1, 64), (-1, 1, 8, 8)])
def test_arrays_keep_their_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    options = replace_data({"dataset": (X[:50].reshape(shape), Y[:50]), "paths": {"logs": tmp_path}})
    table = pd.read_parquet(Path(options["dataset.path"]) / "train.parquet")
    assert table["label"].tolist() == Y[:50].tolist()
    assert options.get("dataset.shape", [64]) == list(X[:50].reshape(shape).shape[1:])
    assert options["dataset.test_share"] == 0.2


@pytest.mark.parametrize("data", [(X[:5], Y[:4]), (Y, Y), (X[:0], Y[:0])])
def test_arrays_that_do_not_fit_are_rejected(data: Any) -> None:
    with pytest.raises(OptionError, match=r"dataset must be samples \[n, \.\.\.\] and labels \[n\], as \(x, y\), got"):
        replace_data({"dataset": data})
    assert replace_data({"dataset": "digits"}) == {"dataset": "digits"}
