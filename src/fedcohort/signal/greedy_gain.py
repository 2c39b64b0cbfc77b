"""greedy_gain: the place of a client in the cohort that a look into the future picks. Only yardsticks read it.

    D_k = what client k would send in this round, of n_k samples that it would train on
    w(S) = w_t + sum_{k in S} n_k D_k / sum_{k in S} n_k
    S_0 = {},   S_{j+1} = S_j + the k of lowest (direction=down) or highest (up) server_val loss of w(S_j + k)

It is told free of charge, as no method could have it: the ledger counts w_t sent to everybody, as for any question, and
neither the time nor the work of training. Hooks and weights of the aggregation, batch-norm statistics and failures
aren't foreseen.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fedcohort.component import FORESEEN_SAMPLES
from fedcohort.signal.base import Computed, Lab
from fedcohort.types import Ids, Values


def places(lab: Lab, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """cohort for the client picked first, 1 for the last, 0 for the others, [len(clients)]; equals go by lowest id.

    NaN where an update is not finite: the server would leave it out. A loss that is not finite is the highest.
    options: cohort, direction ("down" or "up").
    """
    cohort, sign = int(options["cohort"]), 1.0 if options["direction"] == "down" else -1.0
    updates, n = list[torch.Tensor](), list[float]()
    for k in clients.tolist():
        sent = lab.train(round, k)
        updates.append(sent.delta.detach().double())
        n.append(float(sent.n_used))
    left = [i for i, update in enumerate(updates) if bool(torch.isfinite(update).all())]
    out = np.full(len(clients), np.nan)
    out[left] = 0.0
    total, weight = torch.zeros_like(updates[0]) if updates else torch.empty(0), 0.0
    for place in range(cohort, max(cohort - len(left), 0), -1):
        losses = [sign * _finite(lab.server_loss_after((total + n[i] * updates[i]) / (weight + n[i]))) for i in left]
        i = left.pop(int(np.argmin(losses)))
        total, weight = total + n[i] * updates[i], weight + n[i]
        out[i] = float(place)
    return out


def _finite(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


signal = Computed(
    reveals="what everybody's training would do to the server's validation loss",
    bytes_up=0,
    passes=0.0,
    compute=places,
    requirement=FORESEEN_SAMPLES,
    knowable=False,
)
