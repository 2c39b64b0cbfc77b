"""gradient_moments: a client's gradient at w_t, and the standard deviation of its mini-batch gradients (DELTA).

A row has the P numbers of the gradient, and then `gradient_std`, for the work of one pass with gradients.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from fedcohort.signal.base import Computed
from fedcohort.signal.gradient_std import measure_gradients
from fedcohort.signal.lab import Lab
from fedcohort.types import Ids


def gradient_moments(lab: Lab, round: int, clients: Ids, options: Mapping[str, Any]) -> Float64[np.ndarray, "_n d"]:
    """Return the gradient and its standard deviation of each client, [len(clients), P + 1]; options: `gradient_std`."""
    rows = [np.append(mean.cpu().numpy(), std) for mean, std in measure_gradients(lab, round, clients, options)]
    return np.stack(rows) if rows else np.empty((0, 1))


signal = Computed(
    reveals="in which direction a client's data would move the global model, and how much that varies",
    bytes_up=4,
    passes=3.0,
    compute=gradient_moments,
    is_gradient=True,
)
