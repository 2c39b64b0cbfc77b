"""The matrix of the clients' last updates, for selectors that compare updates of all pairs of clients."""

import numpy as np
from jaxtyping import Float32, Float64

from fedcohort.arrays import MAX_FLOAT32, Ids


def store_last_updates(
    last_updates: Float32[np.ndarray, "K _p"], clients: Ids, new_updates: Float64[np.ndarray, "_n P"]
) -> tuple[Float32[np.ndarray, "K P"], Ids]:
    """Return a copy of the matrix with new updates of some clients, and the ids of those whose update fits float32.

    Args:
        last_updates: each client's last update, [n_clients, n_params]; [n_clients, 0] before the first round.
        clients: ids of the clients that arrived, [n].
        new_updates: update of each of `clients`, [n, n_params]; one that does not fit float32 is left out.
    """
    is_in_float32_range = (np.abs(new_updates) <= MAX_FLOAT32).all(1)
    stored_clients = clients[is_in_float32_range]
    is_first_round, matrix_shape = last_updates.shape[1] == 0, (len(last_updates), new_updates.shape[1])
    next_updates = np.zeros(matrix_shape, np.float32) if is_first_round else last_updates.copy()
    next_updates[stored_clients] = new_updates[is_in_float32_range]
    return next_updates, stored_clients
