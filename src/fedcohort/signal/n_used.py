"""n_used: the number of samples that a client trained on this round (FedBalancer's L), or that `loss_sum` is of.

It is of those that mini-batches are drawn from: in epochs, all of them are trained on.
"""

from fedcohort.signal.base import Reported

signal = Reported(
    reveals="how many samples a client trained on",
    bytes_up=4,
    read=lambda update: update.told.get("n_used", float(update.n_used)),
)
