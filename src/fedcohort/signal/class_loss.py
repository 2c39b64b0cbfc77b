"""class_loss: number of training samples and loss of w_t on them, class by class (`fedcohort diagnose`).

Labels are those that the client has, wrong ones included. A row has 3C + 1 numbers for C classes: the numbers of
samples [C], the sums of their losses [C], and the sums of their squared losses [C]. The last number is the sum over all
samples of the mean loss that the other C - 1 labels would have. A loss is -ln p, at most 12 nats, for any objective.

With the last number a server learns how many nats a wrong label costs, so that losses become rates
(`diagnosis/excess_loss.py`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from fedcohort.component import ONE_CLASS_PER_SAMPLE
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids

if TYPE_CHECKING:
    from torch import Tensor

MAX_LOSS = 12.0  # nats; a larger loss counts as this


def sample_loss_statistics(log_probs: "Tensor", labels: "Tensor") -> "Tensor":
    """Return the contribution of each sample to the sums that its client reports, [B, 3C + 1].

    The columns are one-hot class, loss and squared loss by class, and the mean loss of the other classes, in nats.

    Args:
        log_probs: log-probabilities of w_t, [B, C].
        labels: class of each sample, [B].
    """
    import torch  # noqa: PLC0415 - signals are listed before torch is imported

    losses_of_classes = -log_probs.double().clamp(min=-MAX_LOSS)
    n_classes = losses_of_classes.shape[1]
    is_true_class = torch.nn.functional.one_hot(labels, n_classes).double()
    label_loss = losses_of_classes.gather(1, labels[:, None])
    other_class_loss = (losses_of_classes.sum(1, keepdim=True) - label_loss) / max(n_classes - 1, 1)
    return torch.cat([is_true_class, is_true_class * label_loss, is_true_class * label_loss**2, other_class_loss], 1)


def class_losses(
    access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]
) -> Float64[np.ndarray, "_n _d"]:
    """Return statistics of each client's samples and their losses, float64 [len(clients), 3C + 1].

    The columns are, for each class, the number of samples and the sums of their losses and of their squared losses. The
    last column is the sum of the mean losses that the other classes would have.

    Args:
        access: access to w_t and the clients' data.
        round: number of the round; not used.
        clients: ids of the queried clients.
        options: `n_classes`, the number of classes C.
    """
    return access.sum_over_samples(clients, sample_loss_statistics, 3 * options["n_classes"] + 1)


signal = Computed(
    reveals="how many training samples of each class a client has, and how well the global model fits them",
    bytes_up=4,
    passes=1.0,
    compute=class_losses,
    requirement=ONE_CLASS_PER_SAMPLE,
)
