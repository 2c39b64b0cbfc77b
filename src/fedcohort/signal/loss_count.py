"""loss_count: number of samples that a client trained on in its first local epoch, |B_k| (Oort).

With a sample selection that keeps losses it is the number of samples above the loss threshold, |OT| (FedBalancer, Sec.
3.2.3).
"""

import numpy as np

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how many samples a client trained on",
    bytes_up=4,
    read=lambda update: update.loss_report.get("loss_count", float(np.count_nonzero(~np.isnan(update.sample_loss)))),
)
