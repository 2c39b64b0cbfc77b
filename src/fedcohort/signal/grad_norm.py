"""grad_norm: Euclidean norm of a client's full-batch gradient at w_t, for the work of three forward passes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def gradient_norms(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the gradient norm of each client, in nats per unit of a parameter, [len(clients)]."""
    return np.array([float(access.gradient(int(client)).double().norm()) for client in clients], dtype=np.float64)


signal = Computed(
    reveals="how far a client's data would move the global model", bytes_up=4, passes=3.0, compute=gradient_norms
)
