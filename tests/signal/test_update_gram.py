"""U U' by hand, against numpy, and without a copy of U."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fedcohort.signal.base import Derived, find_signal
from fedcohort.signal.update_gram import PARAMETERS_PER_SLICE, pairwise_inner_products
from selector_harness import derive
from signal_kinds import find_derived

NAN, INF = float("nan"), float("inf")


class Largest(TorchDispatchMode):
    """The numbers in the largest tensor that came of an operation."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.found = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        parts = result if isinstance(result, list | tuple) else [result]
        self.found = max(self.found, *(part.numel() for part in parts if isinstance(part, torch.Tensor)), 0)
        return result


def make_updates(m: int, P: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(m, P, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def test_the_gram_matrix_by_hand() -> None:
    matrix = derive("update_gram", np.array([[3.0, 4.0], [1.0, 0.0], [0.0, -2.0]]))
    assert matrix.tolist() == [[25.0, 3.0, -8.0], [3.0, 1.0, 0.0], [-8.0, 0.0, 4.0]]
    assert derive("update_gram", np.empty((0, 5))).shape == (0, 0)


@pytest.mark.parametrize("P", [1, PARAMETERS_PER_SLICE, 2 * PARAMETERS_PER_SLICE + 5])
def test_computing_in_slices_gives_the_same_matrix(P: int) -> None:
    U = make_updates(5, P)
    H = U.numpy() @ U.numpy().T
    matrix = derive("update_gram", U.numpy())
    np.testing.assert_allclose(matrix, H, rtol=0, atol=1e-12 * np.diag(H).max())
    assert matrix.tobytes() == derive("update_gram", U.numpy()).tobytes()


def test_the_gram_matrix_is_float64_and_copies_no_updates() -> None:
    """The square of 1e30 is no float32."""
    no_clients: Any = None
    U = 1e30 * make_updates(3, 4 * PARAMETERS_PER_SLICE, torch.float32)
    with Largest() as largest:
        matrix = pairwise_inner_products(no_clients, U)
    assert matrix.dtype == np.float64
    np.testing.assert_allclose(matrix, U.double().numpy() @ U.double().numpy().T, rtol=1e-9)
    assert largest.found == 3 * PARAMETERS_PER_SLICE


@pytest.mark.parametrize("value", [NAN, INF, -INF, 1e200])
def test_an_update_with_nan_affects_only_its_row(value: float) -> None:
    U = make_updates(4, 2 * PARAMETERS_PER_SLICE).numpy()
    U[2, 7] = value
    matrix = derive("update_gram", U)
    finite_rows = [0, 1, 3]
    assert not np.isfinite(matrix[2, 2])
    assert np.isfinite(matrix[np.ix_(finite_rows, finite_rows)]).all()
    if abs(value) != 1e200:
        assert not np.isfinite(matrix[2]).any()
        assert not np.isfinite(matrix[:, 2]).any()


def test_the_gram_matrix_has_an_entry_for_every_pair() -> None:
    signal = find_signal("update_gram")
    assert isinstance(signal, Derived)
    assert signal.pairs
    assert not find_derived("server_loss").pairs
