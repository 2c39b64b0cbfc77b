"""Every test runs with the shapes and types of arrays checked; here they are seen to be."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float64

from fedcohort.codec.lowrank import least_squares
from fedcohort.round.aggregate import count_once_more
from fedcohort.training.evaluate import mean_of_extremes
from fedcohort.types import ProbeResult
from typecheck import EVERY, OFTEN, check


def until_checked(function: Callable[..., Any], *args: object) -> None:
    """Call what other tests may have called so often that each tenth call is checked alone."""
    for _ in range(EVERY):
        with suppress(IndexError):  # of an array that isn't what it should be
            function(*args)


def test_a_wrong_dtype_is_rejected() -> None:
    with pytest.raises(TypeError, match="mean_of_extremes: values is"):
        until_checked(mean_of_extremes, np.arange(3))
    with pytest.raises(TypeError, match="count_once_more: clients is"):
        until_checked(count_once_more, np.arange(3), np.ones(2))


def test_a_wrong_number_of_dimensions_is_rejected() -> None:
    with pytest.raises(TypeError, match="mean_of_extremes: values is"):
        until_checked(mean_of_extremes, np.ones((3, 2)))


def test_a_dimension_name_has_one_length_per_call() -> None:
    least_squares(torch.ones(4, 2), torch.ones(4, 3))
    with pytest.raises(TypeError, match="least_squares: H is"):
        until_checked(least_squares, torch.ones(4, 2), torch.ones(5, 3))


def test_dataclass_fields_are_checked() -> None:
    with pytest.raises(TypeError, match="ProbeResult"):
        until_checked(ProbeResult, np.arange(2), np.arange(2))


def test_the_first_thousand_calls_and_every_tenth_later_call_are_checked() -> None:
    def checked_function(x: Float64[np.ndarray, "n"]) -> None:
        """Take anything."""

    checked, refused = check(checked_function), list[int]()
    for number in range(OFTEN + 3 * EVERY):
        try:
            checked(np.arange(2))
        except TypeError:
            refused.append(number)
    assert refused == [*range(OFTEN), OFTEN, OFTEN + EVERY, OFTEN + 2 * EVERY]
