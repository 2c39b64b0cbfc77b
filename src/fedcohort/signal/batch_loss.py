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
from fedcohort.signal.base import Computed
from fedcohort.signal.lab import Lab
from fedcohort.types import Ids, Values


@torch.no_grad()
def mini_batch_losses(lab: Lab, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the mean loss of w_t on a random mini-batch of each client, in nats, [len(clients)]; NaN without samples.

    Args:
        lab: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: batch, samples of the mini-batch; key, an integer that the draws follow from.
    """
    network = lab.copy().eval()
    out = np.full(len(clients), np.nan)
    for i, client in enumerate(clients):
        x, y = lab.samples(int(client))
        if len(y):
            draws = new_generator(options["key"], "signal/batch_loss", round, int(client))
            rows = torch.from_numpy(np.sort(draws.permutation(len(y))[: options["batch"]])).to(y.device)
            out[i] = float(lab.loss(network, x[rows], y[rows]))
    return out


def passes(options: Mapping[str, Any], label_counts: Int64[np.ndarray, "n c"]) -> Values:
    """Return the cost of the query in forward passes over each client's training set, [len(clients)].

    Args:
        options: batch, samples of the mini-batch.
        label_counts: samples of each queried client and class, [len(clients), C].
    """
    n = label_counts.sum(1)
    share: Values = np.minimum(n, options["batch"]) / np.maximum(n, 1)
    return share


signal = Computed(
    reveals="how well the global model fits some of a client's training data",
    bytes_up=4,
    passes=passes,
    compute=mini_batch_losses,
)
