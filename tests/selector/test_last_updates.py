"""The matrix of last updates begins with zeros, keeps old rows, and leaves out updates that float32 can't hold."""

import numpy as np

from fedcohort.arrays import MAX_FLOAT32
from fedcohort.selector.last_updates import store_last_updates
from selector_harness import ids


def test_updates_that_fit_float32_are_stored_in_a_copy() -> None:
    new_updates = np.array([[1.0, 2.0], [1.0, 2 * MAX_FLOAT32], [np.nan, 1.0]])
    first, stored_clients = store_last_updates(np.zeros((4, 0), np.float32), ids(0, 1, 3), new_updates)
    assert (first.tolist(), stored_clients.tolist()) == ([[1, 2], [0, 0], [0, 0], [0, 0]], [0])
    assert first.dtype == np.float32
    second, stored_clients = store_last_updates(first, ids(0, 3), np.array([[5.0, -MAX_FLOAT32], [3.0, 4.0]]))
    assert (second[[1, 3]].tolist(), stored_clients.tolist()) == ([[0, 0], [3, 4]], [0, 3])
    assert second[0].tolist() == [5, -MAX_FLOAT32]
    assert first[0].tolist() == [1, 2]
