"""The updates that arrived in a round, with functions that change their weights or fill in tensors not sent."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.flat import Layout
from fedcohort.training.upload import TensorMask
from fedcohort.types import AggregationOverride, Ids, Values


@dataclass(frozen=True)
class ClientVectors:
    """The model buffers and client hooks' vectors that each client sent with its update, ordered as `Arrivals.clients`.

    P is the number of parameters, B of float buffers, I of integer buffers, and m of clients that arrived.

    Attributes:
        n_used: number of samples that each client trained on, [m].
        buffers: float buffers of each client's model, float64 [m, B].
        counters: integer buffers of each client's model, int64 [m, I].
        uploads: vectors that client hooks sent, by name, each float64 [m, P].
        averaged_uploads: names of the uploads that are averaged with the weights of the updates; others are summed.
        bn_mean_positions: positions of batch-norm means in the float buffers; empty if variances are averaged directly.
        bn_variance_positions: positions of the corresponding variances, which are averaged by second moments.
    """

    n_used: Values
    buffers: Tensor
    counters: Tensor
    uploads: Mapping[str, Tensor]
    averaged_uploads: Collection[str]
    bn_mean_positions: Tensor
    bn_variance_positions: Tensor

    def average_buffers(self, is_client_included: Tensor) -> Tensor:
        """Return the mean of the included clients' float buffers, weighted by their samples, [B].

        Args:
            is_client_included: whether each client is included, bool [m].
        """
        n_samples = torch.from_numpy(self.n_used).to(self.buffers)[is_client_included]
        included_buffers = self.buffers[is_client_included]
        included_buffers[:, self.bn_variance_positions] += included_buffers[:, self.bn_mean_positions] ** 2
        buffer_means: Tensor = n_samples @ included_buffers / n_samples.sum()
        buffer_means[self.bn_variance_positions] -= buffer_means[self.bn_mean_positions] ** 2
        return buffer_means


@dataclass(frozen=True)
class Arrivals:
    """The updates that arrived in a round and are finite, in the order of `clients`.

    P is the number of parameters, B of float buffers, I of integer buffers, and m of clients that arrived.

    Attributes:
        clients: sorted ids, [m].
        dropped_ids: ids of the clients whose update was excluded: it was not finite, or exceeded `update_limit`.
        mean: weighted mean of the updates, float64 [P]; None if no client arrived or all weights are 0.
        totals: sum or weighted mean of each vector that client hooks uploaded, float64 [P], by name.
        buffers: mean of the clients' float buffers, weighted by samples, [B]; None where `mean` is None.
        counters: elementwise maximum of the clients' integer buffers, [I]; None where `mean` is None.
        weights: weights of the updates, [m], with the sum 1 unless selector or aggregator set others.
        updates: matrix of the updates, [m, P]; None if only their sum is kept.
        reports: values that clients reported, float64 [m] by signal.
        stored: vectors that each client keeps for later rounds, by id and name.
        client_vectors: buffers and uploads of each client; None if the matrix of updates is not kept.
        derived_signals: signals that the server computed from the updates, by name.
        is_step_dropped: whether the server's step was excluded, so that the model stayed the same.
        relative_update_variance: relative variance of the mean update (`round/update_variance.py`), or NaN.
    """

    clients: Ids
    dropped_ids: Ids
    mean: Tensor | None
    totals: Mapping[str, Tensor]
    buffers: Tensor | None
    counters: Tensor | None
    weights: Values
    updates: Tensor | None
    reports: Mapping[str, Values]
    stored: Mapping[int, Mapping[str, Tensor]]
    client_vectors: ClientVectors | None = None
    derived_signals: Mapping[str, Any] = field(default_factory=dict)
    is_step_dropped: bool = False
    relative_update_variance: float = float("nan")

    @property
    def client_buffers(self) -> Tensor | None:
        """Float buffers of each client that arrived, float64 [m, B]; None if only their mean is kept."""
        return None if self.client_vectors is None else self.client_vectors.buffers


def replace_update_weights(arrivals: Arrivals, client_weights: Values, are_weights_absolute: bool = False) -> Arrivals:
    """Return the same updates with other weights, as in a selector's `AggregationOverride`.

    A client of weight 0 counts as one that did not arrive in sums of uploads, buffers and counters. If all weights are
    0, `mean`, `buffers` and `counters` are None.

    Args:
        arrivals: the updates that arrived.
        client_weights: new weights, float64 [m].
        are_weights_absolute: whether the weights are used as they are; otherwise they are divided by their sum.

    Raises:
        ValueError: the matrix of updates was not kept.
    """
    if arrivals.updates is None or arrivals.client_vectors is None:
        raise ValueError("the matrix of updates was not kept: declare `advises = True` in the selector's class")
    if not client_weights.any():
        return replace(arrivals, mean=None, buffers=None, counters=None, weights=np.zeros(len(client_weights)))
    new_weights = client_weights if are_weights_absolute else client_weights / client_weights.sum()
    weight_tensor, client_vectors = torch.from_numpy(new_weights).to(arrivals.updates), arrivals.client_vectors
    upload_totals = dict(arrivals.totals) | {
        k: weight_tensor @ client_vectors.uploads[k] for k in client_vectors.averaged_uploads
    }
    reweighted_arrivals = replace(
        arrivals, mean=weight_tensor @ arrivals.updates, totals=upload_totals, weights=new_weights
    )
    if (client_weights > 0).all():
        return reweighted_arrivals
    has_positive_weight = weight_tensor > 0
    upload_totals |= {
        k: update_matrix[has_positive_weight].sum(0)
        for k, update_matrix in client_vectors.uploads.items()
        if k not in client_vectors.averaged_uploads
    }
    return replace(
        reweighted_arrivals,
        totals=upload_totals,
        buffers=client_vectors.average_buffers(has_positive_weight),
        counters=client_vectors.counters[has_positive_weight].amax(0),
    )


def apply_weight_override(arrivals: Arrivals, weight_override: AggregationOverride | None) -> Arrivals:
    """Return the updates with the weights that a selector advises.

    If the selector excludes all updates, the result has no mean update, and the model does not change.

    Args:
        arrivals: the updates that arrived.
        weight_override: the selector's override of the weights; None for no change.
    """
    if weight_override is None or arrivals.mean is None:
        return arrivals
    client_weights = arrivals.weights if weight_override.weights is None else weight_override.weights
    if weight_override.keep is not None:
        client_weights = np.where(weight_override.keep, client_weights, 0.0)
    return replace_update_weights(arrivals, client_weights, weight_override.absolute)


def fill_unsent_tensors(arrivals: Arrivals, tensor_masks: Mapping[int, TensorMask | None], layout: Layout) -> Arrivals:
    """Average each tensor over the clients that sent it, and fill tensors that were not sent with this mean.

    With weight p_i and update D_i of client i, the mean is sum_i p_i D_i, divided by the sum of p_i over the clients
    that sent the tensor. It is 0 if no client sent it, and is the same if the matrix of updates is not kept.

    Args:
        arrivals: the updates that arrived.
        tensor_masks: which tensors each client sent, bool [tensors] by client id; None for all, and for a client whose
            other tensors count as zero.
        layout: positions of the model's tensors in its flat vector.
    """
    tensor_mask_by_client = [tensor_masks[int(k)] for k in arrivals.clients]
    if arrivals.mean is None or all(m is None for m in tensor_mask_by_client):
        return arrivals
    is_sent_by_client = np.stack(
        [np.ones(len(layout.parameters), dtype=bool) if m is None else m for m in tensor_mask_by_client]
    )
    weight_sum_by_tensor = torch.tensor([arrivals.weights[is_sent].sum() for is_sent in is_sent_by_client.T])
    sender_weights = layout.repeat_for_parameters(weight_sum_by_tensor.to(arrivals.mean))
    mean_update = torch.where(sender_weights > 0, arrivals.mean / sender_weights, 0.0)
    if arrivals.updates is None:
        return replace(arrivals, mean=mean_update)
    tensor_of_parameter = layout.repeat_for_parameters(torch.arange(len(layout.parameters)))
    is_number_sent = torch.from_numpy(is_sent_by_client)[:, tensor_of_parameter].to(arrivals.updates.device)
    return replace(arrivals, mean=mean_update, updates=torch.where(is_number_sent, arrivals.updates, mean_update))
