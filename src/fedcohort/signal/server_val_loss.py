"""server_val_loss: mean cross-entropy of w_t on the server's validation set (split.server_val), in nats.

It is the metric server_val/loss of w_t, in every round, whatever eval.every is.
"""

from fedcohort.signal.base import ServerMeasured
from fedcohort.signal.lab import Lab


def measure(lab: Lab) -> float:
    """Return the loss; the server's data are its own, and their forward passes are not charged."""
    return lab.server_loss()


signal = ServerMeasured(reveals="nothing of any client", measure=measure)
