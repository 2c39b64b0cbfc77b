"""n_used: number of samples that `loss_sum` is over: those trained on this round (L of FedBalancer).

A client that takes fewer steps than one pass trains on fewer samples than it was given. A sample selection may report
another number.
"""

import numpy as np

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how many samples a client trained on",
    bytes_up=4,
    read=lambda update: update.loss_report.get("n_used", float(np.count_nonzero(~np.isnan(update.sample_loss)))),
)
