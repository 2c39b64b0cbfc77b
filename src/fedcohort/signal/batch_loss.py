"""batch_loss: mean cross-entropy of w_t on one random mini-batch of a client's training set, in eval mode.

It costs the share b / n_k of the work of `loss`. The mini-batch is a function of the option `key`, the round and the
client.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64

from fedcohort.rng import new_generator
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


@torch.no_grad()
def mini_batch_losses(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the mean loss of w_t on a random mini-batch of each client, in nats, [len(clients)]; NaN without samples.

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `batch`, the number of samples of the mini-batch, and `key`, the integer seed of its draw.
    """
    network = access.copy().eval()
    losses = np.full(len(clients), np.nan)
    for client_position, client in enumerate(clients):
        x, y = access.samples(int(client))
        if len(y):
            rng = new_generator(options["key"], "signal/batch_loss", round, int(client))
            batch_positions = torch.from_numpy(np.sort(rng.permutation(len(y))[: options["batch"]])).to(y.device)
            losses[client_position] = float(access.loss(network, x[batch_positions], y[batch_positions]))
    return losses


def count_query_passes(options: Mapping[str, Any], label_counts: Int64[np.ndarray, "n c"]) -> Values:
    """Return the cost of the query in forward passes over each client's training set, [len(clients)].

    Args:
        options: `batch`, the number of samples of the mini-batch.
        label_counts: samples of each queried client and class, [len(clients), C].
    """
    n_samples = label_counts.sum(1)
    return np.asarray(np.minimum(n_samples, options["batch"]) / np.maximum(n_samples, 1))


signal = Computed(
    reveals="how well the global model fits some of a client's training data",
    bytes_up=4,
    passes=count_query_passes,
    compute=mini_batch_losses,
)
