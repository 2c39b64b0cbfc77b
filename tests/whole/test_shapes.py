"""Every test runs with the shapes and types of arrays checked; here they are seen to be."""

import numpy as np
import pytest
import torch

from fedcohort.codec.lowrank import least_squares
from fedcohort.round.aggregate import count_once_more
from fedcohort.training.evaluate import tails
from fedcohort.types import ProbeResult


def test_another_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="tails: values is"):
        tails(np.arange(3))
    with pytest.raises(TypeError, match="count_once_more: clients is"):
        count_once_more(np.arange(3), np.ones(2))


def test_another_number_of_dimensions_is_refused() -> None:
    with pytest.raises(TypeError, match="tails: values is"):
        tails(np.ones((3, 2)))


def test_a_letter_is_one_length_in_one_call() -> None:
    least_squares(torch.ones(4, 2), torch.ones(4, 3))
    with pytest.raises(TypeError, match="least_squares: H is"):
        least_squares(torch.ones(4, 2), torch.ones(5, 3))


def test_a_field_is_checked_too() -> None:
    with pytest.raises(TypeError, match="ProbeResult"):
        ProbeResult(np.arange(2), np.arange(2))
