"""loss_sum: sum of the losses of the samples trained on in the first local epoch (LSum of FedBalancer).

A sample's loss is its cross-entropy when it is first trained on. A sample selection may report another sum.
"""

import numpy as np

from fedcohort.signal.base import Reported
from fedcohort.types import ClientUpdate


def sum_losses(update: ClientUpdate) -> float:
    """Return the sum of the sample losses of a client's `update`, in nats; 0 without a sample."""
    return update.loss_report.get("loss_sum", float(np.nansum(update.sample_loss)))


signal = Reported(reveals="how well the model fits a client's training data", bytes_up=4, read=sum_losses)
