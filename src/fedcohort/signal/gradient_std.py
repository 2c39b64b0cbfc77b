"""gradient_std: standard deviation of a client's mini-batch gradients at w_t, over all parameters (DELTA).

    sigma_k = sqrt(sum_b n_b / n_k ||g_b - g_k||^2),  g_k = sum_b n_b / n_k g_b

It costs one pass over the training set with gradients, three forward passes. The mini-batches are a function of the
option `key`, the round and the client.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.rng import new_generator
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def measure_gradients(
    access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]
) -> Iterator[tuple[Tensor, float]]:
    """Yield each client's mean gradient at w_t in eval mode, float64 [P], and its standard deviation over mini-batches.

    A client without samples has a gradient of zero.

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `batch`, the number of samples of a mini-batch, and `key`, the seed of the mini-batches.
    """
    network = access.copy().eval()
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for client in clients.tolist():
        x, y = access.samples(client)
        sample_order = new_generator(options["key"], "signal/gradient_std", round, client).permutation(len(y))
        mean_gradient = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64, device=y.device)
        mean_squared_norm = 0.0
        for batch_start in range(0, len(y), options["batch"]):
            batch_positions = torch.from_numpy(sample_order[batch_start : batch_start + options["batch"]]).to(y.device)
            gradients = torch.autograd.grad(access.loss(network, x[batch_positions], y[batch_positions]), parameters)
            gradient = torch.cat([g.flatten() for g in gradients]).double()
            mean_gradient += len(batch_positions) / len(y) * gradient
            mean_squared_norm += len(batch_positions) / len(y) * float(gradient @ gradient)
        yield mean_gradient, float(np.sqrt(np.maximum(mean_squared_norm - float(mean_gradient @ mean_gradient), 0.0)))


def mini_batch_gradient_std(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> Values:
    """Return the standard deviation of each queried client's mini-batch gradients, [len(clients)].

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `batch`, the number of samples of a mini-batch, and `key`, the seed of the mini-batches.
    """
    return np.array([grad_std for _, grad_std in measure_gradients(access, round, clients, options)], dtype=np.float64)


signal = Computed(
    reveals="how much the gradient varies over a client's training data",
    bytes_up=4,
    passes=3.0,
    compute=mini_batch_gradient_std,
)
