"""What every dataset's arrays must be when a run reads them."""

import logging
from typing import Any

import numpy as np
import pytest

from fedcohort.dataset.base import Raw, check_raw_data
from fedcohort.errors import DataError
from federation_harness import make_raw


def make_unchecked_raw(**changes: Any) -> Raw:
    """Return data with fields that the constructor's own checks under pytest would not let through."""
    data = make_raw()
    for name, value in changes.items():
        object.__setattr__(data, name, value)
    return data


def test_valid_raw_data_are_unchanged_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    data = make_raw()
    with caplog.at_level(logging.WARNING, "fedcohort"):
        checked = check_raw_data(data)
    assert checked.train_x is data.train_x
    assert not caplog.messages


def test_numpys_default_types_are_converted_with_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    data = make_raw()
    changes = {"train_x": data.train_x.astype(float), "test_y": data.test_y.astype(np.uint8)}
    valid = data.test_x.astype(float), data.test_y.astype(np.int32)
    with caplog.at_level(logging.WARNING, "fedcohort"):
        checked = check_raw_data(make_unchecked_raw(**changes, valid=valid))
    assert checked.train_x.dtype == np.float32
    assert checked.test_y.dtype == np.int64
    assert checked.valid is not None
    assert [part.dtype for part in checked.valid] == [np.float32, np.int64]
    assert "dataset=made: converted train_x from float64 to float32, test_y from uint8 to int64" in caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_x": [[1.0]]}, "train inputs must be an array"),
        ({"test_x": make_raw().test_x[:, 0]}, "test inputs must be an array \\[N, ...\\]"),
        ({"train_y": make_raw().train_y.astype(float)}, "train labels must be an integer array \\[N\\]"),
        ({"train_y": make_raw().train_y[:, None]}, "train labels must be an integer array \\[N\\]"),
        ({"train_y": make_raw().train_y + 1}, "labels must be in \\[0, 9\\], got 1..10"),
        ({"train_x": make_raw().train_x[:-1]}, "1999 inputs and 2000 labels"),
        ({"test_x": np.ones((500, 2), np.float32)}, "test samples have inputs \\[2\\]"),
        ({"train_x": np.full((2000, 1), 1e300)}, "row 0 has a feature that is NaN or infinite"),
        ({"train_owner": np.arange(3)}, "train_owner must be an integer array \\[2000\\]"),
        ({"test_attribute": np.full(500, -1)}, "test_attribute"),
        ({"n_classes": 10.0}, "n_classes must be an integer"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_invalid_raw_data_are_rejected_with_the_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_raw_data(make_unchecked_raw(**changes))
