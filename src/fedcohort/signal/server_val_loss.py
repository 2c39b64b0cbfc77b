"""server_val_loss: mean cross-entropy of w_t on the server's validation set (split.server_val), in nats.

It is the metric server_val/loss of w_t, in every round, whatever eval.every is.
"""

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import ServerMeasured


def measure_server_loss(access: SignalAccess) -> float:
    """Return the mean cross-entropy of w_t on the server's validation set, in nats, without a charge.

    Args:
        access: access to w_t and the server's data.
    """
    return access.server_loss()


signal = ServerMeasured(reveals="nothing about the clients' data", measure=measure_server_loss)
