"""update_gram: U U', the inner products of all pairs of arrived updates (FedPNS).

A row has the update's products with all updates, in the order of the outcome's clients. An update that is not finite
makes its row and its column not finite. One so long that its square overflows shows on the diagonal only.
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived

if TYPE_CHECKING:
    from torch import Tensor

PARAMETERS_PER_SLICE = 8192  # columns of U in a slice: fifty updates of it fit in a processor's cache


def pairwise_inner_products(access: SignalAccess, updates: "Tensor") -> Float64[np.ndarray, "m m"]:
    """Return the inner products of all pairs of updates, float64 [arrived, arrived], computed slice by slice.

    The same updates give the same bits on the same number of threads.

    Args:
        access: not used.
        updates: updates of the clients that arrived, [arrived, P].
    """
    gram_matrix = updates.new_zeros((len(updates), len(updates))).double()
    for slice_start in range(0, updates.shape[1], PARAMETERS_PER_SLICE):
        update_slice = updates[:, slice_start : slice_start + PARAMETERS_PER_SLICE].double()
        gram_matrix.addmm_(update_slice, update_slice.T)
    return np.asarray(gram_matrix.cpu().numpy())


signal = Derived(reveals="nothing beyond the updates", make=pairwise_inner_products, pairs=True)
