"""server_val_loss: mean cross-entropy of w_t on the server's validation set (split.server_val), in nats.

It is the metric server_val/loss of w_t, in every round, whatever eval.every is.
"""

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import ServerMeasured


def measure_server_loss(access: SignalAccess) -> float:
    """Return the server's validation loss of w_t in nats; forward passes on the server's own data are not charged."""
    return access.server_loss()


signal = ServerMeasured(reveals="nothing about the clients' data", measure=measure_server_loss)
