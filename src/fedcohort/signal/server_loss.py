"""server_loss: the loss of w_t moved by a weighted sum of the updates that arrived, on the server's own data (FedPNS).

What a reader finds is the function: weights [arrived], as they are, -> mean cross-entropy on server_val, in nats.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.signal.base import Derived, Lab
from fedcohort.types import Values

if TYPE_CHECKING:
    from torch import Tensor


def trial(lab: Lab, updates: "Tensor") -> Callable[[Values], float]:
    """The server's data are no client's, and its forward passes are not charged."""
    return lambda weights: lab.server_loss_after(updates.new_tensor(np.asarray(weights)) @ updates)


signal = Derived(reveals="nothing that the updates don't", make=trial)
