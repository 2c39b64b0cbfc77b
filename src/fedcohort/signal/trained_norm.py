"""trained_norm: Euclidean norm of the update that a client would send in this round, after training from w_t (OCS).

All queried clients train a whole job before the cohort is selected, and send the norm. A selected client then sends the
update of this training: its job has no further computation. The training is that of the job, from the same random
numbers, except that hooks of the aggregator and the regulariser take no part in the norm.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort.component import FORESEEN_SAMPLES
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def trained_update_norms(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the Euclidean norm of the update that each queried client trains, [len(clients)].

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: not used; the signal has no options.
    """
    update_norms = [float(access.train(round, int(client)).delta.double().norm()) for client in clients]
    return np.array(update_norms, dtype=np.float64)


signal = Computed(
    reveals="how far a client's data moved the model",
    bytes_up=4,
    passes=0.0,
    compute=trained_update_norms,
    requirement=FORESEEN_SAMPLES,
    trains=True,
)
