"""Checks of what parts return: what passes, and the sentence about what doesn't."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from case_loop import for_all
from fedcohort import contracts
from fedcohort.errors import ComponentError

NAN = float("nan")


def test_valid_values_are_accepted() -> None:
    contracts.check_array("x", np.array([1.0, 2.0]), (2,), "f", 0)
    contracts.check_array("x", np.array([NAN, np.inf]), (2,), "f", allow_nan=True)
    contracts.check_array("x", np.empty(0), (0,), "f", 0, 1)
    contracts.check_array("x", np.array([True]), (1,), "b")
    contracts.check_ids("x", np.array([0, 3]), 4)
    contracts.check_ids("x", np.empty(0, np.int64), 4)
    contracts.check_integer("x", np.int64(3), 0)
    contracts.check_numbers_by_name("x", {"a": 1, "b": NAN, "c": np.float32(2)})
    contracts.check_vectors_by_name("x", {"c": torch.zeros(3)}, 3)
    assert contracts.check_number("x", np.float32(2), 0) == 2.0
    assert contracts.check_number("x", np.inf, 0, allow_infinite=True) == np.inf
    assert contracts.check_result_and_state((None, 3), int, 2, allow_none=True) == (None, 3)


@for_all(
    "check, message",
    [
        (
            lambda: contracts.check_array("x", [1.0], (1,), "f"),
            "x must be a float array \\[1\\].*got \\[1.0\\] \\(list\\)",
        ),
        (
            lambda: contracts.check_array("x", np.ones(3), (2,), "f"),
            "got float64 array \\[3\\] with values from 1 to 1",
        ),
        (lambda: contracts.check_array("x", np.ones(2), (2,), "i"), "an integer array \\[2\\]"),
        (lambda: contracts.check_array("x", np.array([-1.0]), (1,), "f", 0), "in \\[0, inf\\]"),
        (lambda: contracts.check_array("x", np.array([NAN]), (1,), "f"), "finite"),
        (lambda: contracts.check_array("x", np.array([NAN, 7.0]), (2,), "f", 0, 1, allow_nan=True), "in \\[0, 1\\]"),
        (lambda: contracts.check_ids("x", np.array([1, 1]), 4), "sorted distinct numbers in \\[0, 3\\]"),
        (lambda: contracts.check_ids("x", np.array([4]), 4), "sorted distinct"),
        (lambda: contracts.check_ids("x", np.empty(0, np.int64), 4, min_length=1), "at least 1"),
        (lambda: contracts.check_number("x", True), "a finite number"),
        (lambda: contracts.check_number("x", NAN, 0, allow_infinite=True), "a number of at least 0"),
        (lambda: contracts.check_number("x", 0.0, 0, exclude_min=True), "above 0"),
        (lambda: contracts.check_integer("x", 1.5, 0), "an integer of at least 0, got 1.5 \\(float\\)"),
        (lambda: contracts.check_numbers_by_name("x", {"a": "b"}), "x\\['a'\\]"),
        (lambda: contracts.check_tensor("x", torch.zeros(3, dtype=torch.int64), (3,)), "got int64 Tensor \\[3\\]"),
        (lambda: contracts.check_vectors_by_name("x", {"c": torch.zeros(2)}, 3), "x\\['c'\\] must be a tensor \\[3\\]"),
        (lambda: contracts.check_result_and_state(3, int, 2), "a pair \\(int, state\\)"),
        (
            lambda: contracts.check_result_and_state((3, "a"), int, 2),
            "the state must be a int, the type of the previous state",
        ),
    ],
)
def test_invalid_values_are_described(check: Callable[[], Any], message: str) -> None:
    with pytest.raises(ComponentError, match=message):
        check()


def test_an_exception_names_the_module_that_raised_it() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    text = contracts.describe_exception(caught.value, __name__)
    assert text.startswith("ZeroDivisionError: division by zero (")
    assert "test_contracts.py, line" in text
    assert contracts.find_error_line(caught.value.__traceback__, "elsewhere") == ""
