"""How columns become arrays of inputs."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fedcohort.dataset.table import Frame
from fedcohort.dataset.user_table.inputs import read_inputs
from fedcohort.errors import DataError
from folder_tables import make_folder_dataset

NUMBERS = Frame("t.csv", pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [5.0, 6.0, 7.0, 8.0]}))


def read_columns(frame: Frame, columns: list[str], lists: list[str], **options: Any) -> np.ndarray:
    scale = options.pop("scale", 1.0)
    (x,), _ = read_inputs(make_folder_dataset(Path("t"), **options), [frame], columns, lists, scale)
    return x


def test_a_window_holds_consecutive_rows_with_columns_first() -> None:
    np.testing.assert_array_equal(read_columns(NUMBERS, ["a", "b"], [], window=2), [[[1, 2], [5, 6]], [[3, 4], [7, 8]]])


def test_columns_of_lists_are_channels_in_the_order_in_which_they_are_named() -> None:
    frame = Frame("t.parquet", pa.table({"a": [[1.0, 2.0]], "b": [[3.0, 4.0]]}))
    np.testing.assert_array_equal(read_columns(frame, [], ["b", "a"]), [[[3, 4], [1, 2]]])


def test_inputs_are_divided_and_reshaped() -> None:
    np.testing.assert_array_equal(read_columns(NUMBERS, ["a", "b"], [], scale=2.0, shape=[2, 1])[0], [[0.5], [2.5]])
    with pytest.raises(DataError, match=r"dataset.shape=\[3\] must have 2 values, as t.csv has, but has 3"):
        read_columns(NUMBERS, ["a", "b"], [], shape=[3])


def test_problems_of_all_tables_are_one_message() -> None:
    gaps = [Frame(name, pa.table({"a": [1.0, None], "b": [1.0, 2.0]})) for name in ("train.csv", "test.csv")]
    with pytest.raises(DataError, match=r"(?s)2 problems:.*train.csv: column 'a', row 1.*test.csv: column 'a', row 1"):
        read_inputs(make_folder_dataset(Path("t")), gaps, ["a", "b"], [], 1.0)
