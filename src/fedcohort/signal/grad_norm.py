"""grad_norm: Euclidean norm of a client's full-batch gradient at w_t, for the work of three forward passes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def gradient_norms(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the norm of each queried client's gradient at w_t, in nats per unit of a parameter, [len(clients)].

    Args:
        access: access to w_t and the clients' data.
        round: number of the round; not used.
        clients: ids of the queried clients.
        options: not used; the signal has no options.
    """
    return np.array([float(access.gradient(int(client)).double().norm()) for client in clients], dtype=np.float64)


signal = Computed(
    reveals="how far a client's data would move the global model", bytes_up=4, passes=3.0, compute=gradient_norms
)
