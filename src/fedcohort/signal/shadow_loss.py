"""shadow_loss: mean cross-entropy on a client's training set of a model that is discarded afterwards (FedCor).

    model:  w = w_t + sum_{k in trainers} n_k D_k / sum_{k in trainers} n_k
    D_k:  the update that k would send in this round, after training on n_k samples

Options: trainers, their ids. They train without hooks, as those of the aggregation would need its state; batch-norm
statistics are those of w_t. An update that is not finite is left out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.component import FORESEEN_SAMPLES
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def shadow_losses(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return each client's loss of a model that some clients train and the server then discards, [len(clients)].

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `trainers`, the ids of the clients that train.

    Returns:
        Losses in nats; NaN if no trained update is finite.
    """
    update_sum, n_samples = None, 0
    for client in options["trainers"]:
        client_update = access.train(round, int(client))
        trained_update, n_used = client_update.delta.detach().double(), client_update.n_used
        if n_used and bool(trained_update.isfinite().all()):
            update_sum = n_used * trained_update if update_sum is None else update_sum + n_used * trained_update
            n_samples += n_used
    return np.full(len(clients), np.nan) if update_sum is None else access.losses_after(update_sum / n_samples, clients)


signal = Computed(
    reveals="how a round with some clients would change the loss on a client's training data",
    bytes_up=4,
    passes=1.0,
    compute=shadow_losses,
    requirement=FORESEEN_SAMPLES,
    jobs=lambda options: tuple(options["trainers"]),
)
