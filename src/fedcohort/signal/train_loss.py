"""train_loss: the path-averaged training loss of the round (UCB-CS Eq. 5), a free by-product of local training.

(1 / sum_l b_l) sum_l sum_{xi in batch l} f(w_k^(l), xi),   each batch's cross-entropy before its step

Every batch weighs by its size b_l. Eq. 5 is the plain mean over steps, of batches that all have b samples, where that
is the same; here the smaller last batch of an epoch counts for less.
"""

from fedcohort.signal.base import Reported
from fedcohort.types import ClientUpdate


def path_average(update: ClientUpdate) -> float:
    """The sample mean of the mini-batch losses in nats, NaN without a step."""
    return float(update.batch_loss @ update.batch_size / update.batch_size.sum()) if update.steps else float("nan")


signal = Reported(reveals="how well the model fits a client's training data", bytes_up=4, read=path_average)
