"""n_used: the number of samples that `loss_sum` is of: those trained on this round (FedBalancer's L), or what is told.

A client that takes fewer steps than a pass has trains on fewer samples than it was given.
"""

import numpy as np

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how many samples a client trained on",
    bytes_up=4,
    read=lambda update: update.loss_report.get("n_used", float(np.count_nonzero(~np.isnan(update.sample_loss)))),
)
