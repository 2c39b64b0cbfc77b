"""compressed_gradient: a short vector that represents a client's full-batch gradient at w_t (HCSFed).

Options: rate and way of the compression (`maths/sketch.py`), and key, an integer that the random numbers of the
compression follow from, the same for all clients. It is charged like the gradient, three forward passes; the
compression is free.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from fedcohort.maths.sketch import sketch_gradient
from fedcohort.rng import new_generator
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids


def compress_gradients(
    access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]
) -> Float64[np.ndarray, "_n d"]:
    """Return each client's compressed gradient, [len(clients), d']; NaN in all columns if it is not finite.

    Args:
        access: access to w_t and the clients' data.
        round: number of the round; not used.
        clients: ids of the queried clients.
        options: `rate` and `way` of the compression (`maths/sketch.py`), and `key`, the seed of its random numbers.
    """
    gradient_sketches = []
    for client in clients:
        gradient = access.gradient(int(client)).double().cpu().numpy()
        rng = new_generator(options["key"], "signal/sketch")
        gradient_sketches.append(sketch_gradient(gradient, options["rate"], options["way"], rng))
    return np.stack(gradient_sketches)


signal = Computed(
    reveals="roughly in which direction a client's data would move the global model",
    bytes_up=4,
    passes=3.0,
    compute=compress_gradients,
    is_gradient=True,
)
