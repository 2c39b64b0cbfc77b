"""The shapes and dtypes of arrays are checked in every test (`typecheck`)."""

import numpy as np
import pytest
import torch
from jaxtyping import Float64

from fedcohort.codec.lowrank import least_squares
from fedcohort.maths.simplex import min_norm_weights
from fedcohort.round.aggregate import add_to_times_selected
from fedcohort.training.client_metrics import mean_worst_and_best
from fedcohort.types import ProbeResult
from typecheck import check


def test_a_wrong_dtype_is_rejected() -> None:
    with pytest.raises(TypeError, match="mean_worst_and_best: client_values is"):
        mean_worst_and_best(np.arange(3))
    with pytest.raises(TypeError, match="add_to_times_selected: clients is"):
        add_to_times_selected(np.arange(3), np.ones(2))


def test_a_wrong_number_of_dimensions_is_rejected() -> None:
    with pytest.raises(TypeError, match="mean_worst_and_best: client_values is"):
        mean_worst_and_best(np.ones((3, 2)))


def test_a_dimension_name_has_one_length_per_call() -> None:
    least_squares(torch.ones(4, 2), torch.ones(4, 3))
    with pytest.raises(TypeError, match="least_squares: H is"):
        least_squares(torch.ones(4, 2), torch.ones(5, 3))


def test_dataclass_fields_are_checked() -> None:
    with pytest.raises(TypeError, match="ProbeResult"):
        ProbeResult(np.arange(2), np.arange(2))


def test_arguments_are_checked_by_position_and_by_name() -> None:
    start = np.ones(2) / 2
    assert min_norm_weights(np.eye(2), start, 1.0).shape == (2,)
    for args in ((np.ones((2, 3)), start, 1.0), (np.eye(2), np.ones(2, dtype=np.int64), 1.0)):
        with pytest.raises(TypeError, match="min_norm_weights: "):
            min_norm_weights(*args)
    with pytest.raises(TypeError, match="min_norm_weights: start_weights is"):
        min_norm_weights(np.eye(2), epsilon=1.0, start_weights=np.ones(2, dtype=np.int64))


def test_a_wrong_shape_is_rejected_after_any_number_of_correct_calls() -> None:
    def double(x: Float64[np.ndarray, "n"], stacked: bool = False) -> Float64[np.ndarray, "n"]:
        return np.stack([x, x]) if stacked else 2 * x

    checked = check(double)
    for n in (1, 2, 2, 1):
        assert checked(np.ones(n)).shape == (n,)
    with pytest.raises(TypeError, match=r"double: x is array\(\[0, 1\]\), not"):
        checked(np.arange(2))
    with pytest.raises(TypeError, match="double: return is"):
        checked(np.ones(2), stacked=True)
    assert checked(np.ones(2)).shape == (2,)
