"""greedy_gain: a client's position in the cohort that a simulation of the round adds client by client.

Only oracles read it.

    D_k:  the update that client k would send in this round, after training on n_k samples
    w(S):  w_t + sum_{k in S} n_k D_k / sum_{k in S} n_k
    S_{j+1}:  S_j + the k with the lowest (direction=down) or highest (up) server_val loss of w(S_j + k), S_0 = {}

It is free of charge, as no method could have it: the ledger counts w_t sent to all queried clients, but neither the
time nor the work of training. Hooks and weights of the aggregation, batch-norm statistics and failures are not
simulated.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fedcohort.component import FORESEEN_SAMPLES
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def order_clients_greedily(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return a score of each client by its position in a greedily simulated cohort, [len(clients)].

    The client that is added first scores the cohort's size, each later one 1 less, and the others 0. Ties go to the
    lowest id. A client whose update is not finite scores NaN, since the server would leave it out. A loss that
    is not finite counts as the highest.

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `cohort`, the number of clients to add, and `direction`: "down" adds the client with the lowest loss of
            the server, "up" the one with the highest.
    """
    cohort, sign_of_loss_change = int(options["cohort"]), 1.0 if options["direction"] == "down" else -1.0
    updates, n_samples_used = list[torch.Tensor](), list[float]()
    for client in clients.tolist():
        client_update = access.train(round, client)
        updates.append(client_update.delta.detach().double())
        n_samples_used.append(float(client_update.n_used))
    remaining_positions = [i for i, update in enumerate(updates) if bool(torch.isfinite(update).all())]
    client_scores = np.full(len(clients), np.nan)
    client_scores[remaining_positions] = 0.0
    update_sum, total_n_used = torch.zeros_like(updates[0]) if updates else torch.empty(0), 0.0
    for score_of_chosen_client in range(cohort, max(cohort - len(remaining_positions), 0), -1):
        server_losses = []
        for i in remaining_positions:
            candidate_mean_update = (update_sum + n_samples_used[i] * updates[i]) / (total_n_used + n_samples_used[i])
            server_losses.append(access.server_loss_after(candidate_mean_update))
        signed_losses = sign_of_loss_change * np.where(np.isfinite(server_losses), server_losses, np.inf)
        i = remaining_positions.pop(int(np.argmin(signed_losses)))
        update_sum, total_n_used = update_sum + n_samples_used[i] * updates[i], total_n_used + n_samples_used[i]
        client_scores[i] = float(score_of_chosen_client)
    return client_scores


signal = Computed(
    reveals="how the training of every client would change the server's validation loss",
    bytes_up=0,
    passes=0.0,
    compute=order_clients_greedily,
    requirement=FORESEEN_SAMPLES,
    knowable=False,
)
