"""loss_squares: sum of squared losses of the samples trained on in the first local epoch (Oort).

A sample's loss is its cross-entropy when it is first trained on, a by-product of training. With a sample selection that
keeps losses the sum is over the samples above the loss threshold (FedBalancer, Sec. 3.2.3).
"""

import numpy as np

from fedcohort.signal.base import Reported
from fedcohort.types import ClientUpdate


def sum_squared_losses(update: ClientUpdate) -> float:
    """Return the sum of the squared sample losses of a client's `update`, in nats^2; 0 without a sample."""
    sample_losses = update.sample_loss[~np.isnan(update.sample_loss)]
    return update.loss_report.get("loss_squares", float(sample_losses @ sample_losses))


signal = Reported(reveals="how well the model fits a client's training data", bytes_up=4, read=sum_squared_losses)
