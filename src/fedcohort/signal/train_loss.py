"""train_loss: training loss of the round averaged over the local steps (UCB-CS Eq. 5), a by-product of training.

    loss:  (1 / sum_l b_l) sum_l sum_{xi in batch l} f(w_k^(l), xi), each batch's cross-entropy before its step

Batches are weighted by their size b_l. Eq. 5 is the plain mean over steps, of batches that all have b samples, which is
the same; here the smaller last batch of an epoch counts less.
"""

from fedcohort.signal.base import Reported
from fedcohort.types import ClientUpdate


def mean_batch_loss(update: ClientUpdate) -> float:
    """Return the mean loss of the mini-batches of a client's `update`, weighted by their sizes, in nats.

    The mean is NaN without a local step.
    """
    return float(update.batch_loss @ update.batch_size / update.batch_size.sum()) if update.steps else float("nan")


signal = Reported(reveals="how well the model fits a client's training data", bytes_up=4, read=mean_batch_loss)
