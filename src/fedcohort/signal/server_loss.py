"""server_loss: loss of w_t moved by a weighted sum of the arrived updates, on the server's validation set.

The value of this signal is a function: it takes a weight for each arrived client, [arrived], which need not sum to 1,
and returns the mean cross-entropy on the server's validation set, in nats. The run charges the forward passes of each
call to the server (`comp/server_flops`). FedPNS and GreedyFed read it. Batch normalisation uses the running statistics
of w_t: those of the updates are not averaged for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived
from fedcohort.types import Values

if TYPE_CHECKING:
    from torch import Tensor


def make_server_loss(access: SignalAccess, updates: "Tensor") -> Callable[[Values], float]:
    """Return a function of weights [arrived] that returns the server's loss of w_t plus the weighted updates, in nats.

    Args:
        access: access to w_t and the server's validation set.
        updates: updates of the clients that arrived, [arrived, P].
    """
    return lambda weights: access.server_loss_after(updates.new_tensor(np.asarray(weights)) @ updates)


signal = Derived(reveals="nothing beyond the updates", make=make_server_loss)
