"""gradient_moments: a client's gradient at w_t, and the standard deviation of its mini-batch gradients (DELTA).

A row has the P numbers of the gradient, and then `gradient_std`, for the work of one pass with gradients.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.signal.gradient_std import measure_gradients
from fedcohort.types import Ids


def gradient_moments(
    access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]
) -> Float64[np.ndarray, "_n d"]:
    """Return each client's gradient and its standard deviation over mini-batches, [len(clients), P + 1].

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `batch`, the number of samples of a mini-batch, and `key`, the seed of the mini-batches.
    """
    gradients = measure_gradients(access, round, clients, options)
    moment_rows = [np.append(gradient.cpu().numpy(), gradient_deviation) for gradient, gradient_deviation in gradients]
    return np.stack(moment_rows) if moment_rows else np.empty((0, 1))


signal = Computed(
    reveals="in which direction a client's data would move the global model, and how much that varies",
    bytes_up=4,
    passes=3.0,
    compute=gradient_moments,
    is_gradient=True,
)
