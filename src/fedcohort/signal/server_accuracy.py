"""server_accuracy: accuracy and loss of w_t moved by a weighted sum of the arrived updates, on the server's samples.

The value of this signal is a function of a weight for each arrived client, [arrived]. The weights need not sum to 1. It
returns the accuracy, from 0 to 1, and the mean cross-entropy in nats, both on the server's validation set. The run
charges the forward passes of each call to the server (`comp/server_flops`). GPFL reads it. Batch normalisation uses
the running statistics of w_t: those of the updates are not averaged for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived
from fedcohort.types import Values

if TYPE_CHECKING:
    from torch import Tensor


def make_server_accuracy(access: SignalAccess, updates: "Tensor") -> Callable[[Values], tuple[float, float]]:
    """Return a function of weights [arrived] that returns the server's accuracy and loss after a weighted aggregation.

    The accuracy, in [0, 1], and the mean cross-entropy in nats are those of w_t plus the weighted sum of the updates.

    Args:
        access: access to w_t and the server's validation set.
        updates: updates of the clients that arrived, [arrived, P].
    """
    return lambda weights: access.server_accuracy_after(updates.new_tensor(np.asarray(weights)) @ updates)


signal = Derived(reveals="nothing beyond the updates", make=make_server_accuracy)
