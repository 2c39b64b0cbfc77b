"""update_gram: U U', the inner products of the updates that arrived, each with each (FedPNS).

A row is an update's products with all of them, in the order of the outcome's clients. An update that is not finite
shows in its row and its column, no number of which is; one so long that its square is no number shows on the diagonal.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.signal.base import Derived, Lab

if TYPE_CHECKING:
    from torch import Tensor

COLUMNS = 8192  # of U at a time: a slice of fifty updates stays in a processor's cache


def gram(lab: Lab, updates: "Tensor") -> Float64[np.ndarray, "m m"]:
    """Return the inner products, [arrived, arrived], in float64 where the updates are, slice after slice.

    The same updates give the same bits for the same threads.
    """
    total = updates.new_zeros((len(updates), len(updates))).double()
    for start in range(0, updates.shape[1], COLUMNS):
        part = updates[:, start : start + COLUMNS].double()
        total.addmm_(part, part.T)
    found: Float64[np.ndarray, "m m"] = total.cpu().numpy()
    return found


signal = Derived(reveals="nothing that the updates don't", make=gram, pairs=True)
