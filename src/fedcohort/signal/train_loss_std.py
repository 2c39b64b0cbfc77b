"""train_loss_std: population standard deviation (ddof 0) of the round's mini-batch losses (UCB-CS Sec. III)."""

import numpy as np

from fedcohort.signal.base import Reported
from fedcohort.types import ClientUpdate


def batch_loss_std(update: ClientUpdate) -> float:
    """Return the standard deviation of the mini-batch losses of a client's `update`, in nats.

    It is 0 after a single step, and NaN without a step.
    """
    return float(np.std(update.batch_loss)) if update.steps else float("nan")


signal = Reported(reveals="how much the loss varies over a client's training data", bytes_up=4, read=batch_loss_std)
