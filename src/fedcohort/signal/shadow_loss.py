"""shadow_loss: the mean cross-entropy on a client's training set of a model that is thrown away (FedCor).

    w = w_t + sum_{k in trainers} n_k D_k / sum_{k in trainers} n_k
    D_k = what k would send in this round, of n_k samples that it would train on

options: trainers, their ids. Trained without hooks, as the aggregation's would need its state; batch-norm statistics
are those of w_t. An update that is not finite is left out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.component import FORESEEN_SAMPLES
from fedcohort.signal.base import Computed, Lab
from fedcohort.types import Ids, Values


def losses(lab: Lab, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the losses in nats, [len(clients)]; NaN where no update is finite."""
    total, samples = None, 0
    for k in options["trainers"]:
        sent = lab.train(round, int(k))
        update, n = sent.delta.detach().double(), sent.n_used
        if n and bool(update.isfinite().all()):
            total = n * update if total is None else total + n * update
            samples += n
    return np.full(len(clients), np.nan) if total is None else lab.losses_after(total / samples, clients)


signal = Computed(
    reveals="what a round with some clients would do to the fit of a client's training data",
    bytes_up=4,
    passes=1.0,
    compute=losses,
    requirement=FORESEEN_SAMPLES,
    jobs=lambda options: tuple(options["trainers"]),
)
