"""Tables with one row per time step."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedcohort.dataset.files import read_table
from fedcohort.dataset.user_table.column_kinds import find_series_and_time_columns
from fedcohort.errors import DataError, OptionError
from folder_tables import make_folder_dataset
from optional_values import not_none


def recordings(path: Path, n: int = 12, steps: int = 25) -> None:
    """Write n series of two signals; the label and the person belong to the series."""
    frames = []
    for k in range(n):
        t = np.arange(steps)
        frames.append(
            pd.DataFrame({"rec": f"r{k}", "who": f"p{k % 3}", "t": t, "a": 100 * k + t, "b": -k, "label": k % 2})
        )
    pd.concat(frames).to_csv(path / "train.csv", index=False)


def test_windows_are_consecutive_rows_of_one_series(tmp_path: Path) -> None:
    recordings(tmp_path)
    options: dict[str, Any] = {"series": "rec", "window": 10, "client": "who", "leave_out": ["t"], "test_share": 0.25}
    raw = make_folder_dataset(tmp_path, **options).load(0)
    x = np.concatenate([raw.train_x, raw.test_x])
    assert x.shape == (24, 2, 10)
    assert (np.diff(x[:, 0]) == 1).all()
    np.testing.assert_array_equal(np.unique(x[:, 0, 0] % 100), [0, 10])
    series = x[:, 0, 0] // 100
    np.testing.assert_array_equal(series % 2, np.concatenate([raw.train_y, raw.test_y]))
    np.testing.assert_array_equal(series[: len(raw.train_y)] % 3, not_none(raw.train_owner))
    assert "24 windows of 10 rows, 60 rows left out" in raw.inputs
    assert "6 windows cut for the test part" in raw.inputs


def test_an_incomplete_window_is_dropped_as_a_whole(tmp_path: Path) -> None:
    recordings(tmp_path)
    frame = pd.read_csv(tmp_path / "train.csv")
    frame.loc[3, "a"] = np.nan
    frame.to_csv(tmp_path / "train.csv", index=False)
    raw = make_folder_dataset(tmp_path, series="rec", window=10, leave_out=["t"], test_share=0.25, missing="drop").load(
        0
    )
    assert len(raw.train_y) + len(raw.test_y) == 23


def test_a_window_that_no_series_fills_is_rejected(tmp_path: Path) -> None:
    recordings(tmp_path)
    with pytest.raises(DataError, match=r"^dataset.window=26: .*the longest such series has 25 rows"):
        make_folder_dataset(tmp_path, series="rec", window=26, test_share=0.25).load(0)
    with pytest.raises(OptionError, match="window must be null where features names columns of lists"):
        make_folder_dataset(tmp_path, window=5, features="a")


def test_long_tables_are_recognised(tmp_path: Path) -> None:
    recordings(tmp_path)
    train = read_table(tmp_path / "train.csv")
    assert find_series_and_time_columns(train, "label") == ("rec", "t")
    shuffled = pd.read_csv(tmp_path / "train.csv").sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "train.csv", index=False)
    assert find_series_and_time_columns(read_table(tmp_path / "train.csv"), "label") is None


def test_a_run_on_a_long_table_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recordings(tmp_path)
    make_folder_dataset(tmp_path, test_share=0.25).load(0)
    assert "dataset.series=rec dataset.window=50 dataset.leave_out=[t] makes samples of 50 rows" in caplog.text


def test_several_columns_of_lists_are_channels(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"ax": [[1.0, 2.0], [3.0, 4.0]], "ay": [[5.0, 6.0], [7.0, 8.0]], "label": [0, 1]}
    frame = pd.DataFrame(columns)
    for part in ("train", "test"):
        frame.to_parquet(tmp_path / f"{part}.parquet")
    raw = make_folder_dataset(tmp_path, features=["ay", "ax"]).load(0)
    np.testing.assert_array_equal(raw.train_x, [[[5, 6], [1, 2]], [[7, 8], [3, 4]]])
    assert raw.inputs == "2 x 2: ay, ax"
    pd.DataFrame({**columns, "ay": [[1.0], [2.0]]}).to_parquet(tmp_path / "train.parquet")
    with pytest.raises(
        DataError, match=r"'ay' holds \(1,\) and 'ax' \(2,\): all columns of lists must have the same length"
    ):
        make_folder_dataset(tmp_path, features=["ax", "ay"]).load(0)
