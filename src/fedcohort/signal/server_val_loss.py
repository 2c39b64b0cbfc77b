"""server_val_loss: the mean cross-entropy of w_t on the server's validation set (split.server_val), in nats.

It is the metric server_val/loss of w_t, in every round, whatever eval.every is.
"""

from fedcohort.signal.base import Lab, ServerMeasured


def measure(lab: Lab) -> float:
    """The server's data are no client's, and its forward passes are not charged."""
    return lab.server_loss()


signal = ServerMeasured(reveals="nothing of any client", measure=measure)
