"""dht: the data heterogeneity triplet (CI, AI, SC) of a client, from its estimated interaction matrix (FedDiverse).

FedDiverse, Sec. IV-A. It is queried once, at the end of pre-training: the client trains models from w_t, and sends
three numbers.

Cost: 3 forward passes per sample and epoch for each biased model and for the attribute classifier, and one pass of each
over T_k for predictions. There is one biased model, or with more than two classes one for each class of the client. The
server does not know how many samples the attribute classifier trains on, and charges the client's largest class, the
upper bound. With ten classes and five epochs the work is that of about 27 jobs of two epochs. All clients wait for the
slowest, so that it takes the virtual time of about 50 rounds.

Options: q, epochs, lr and batch (`interaction.EstimateOptions`), and seed, from which the batch orders follow.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int64

from fedcohort.component import ONE_CLASS_PER_SAMPLE
from fedcohort.data import skew
from fedcohort.rng import new_generator, seeded_torch
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed
from fedcohort.types import Ids, Values


def estimate_skew_triplets(access: SignalAccess, round: int, clients: Ids, options: Mapping[str, Any]) -> np.ndarray:
    """Return each client's class imbalance, attribute imbalance and spurious correlation, float64 [len(clients), 3].

    Args:
        access: access to w_t and the clients' data.
        round: number of the round.
        clients: ids of the queried clients.
        options: `q`, `epochs`, `lr` and `batch` of the models that a client trains, and `seed` of their batch orders.
    """
    from fedcohort.data.interaction import EstimateOptions, estimate_group_counts  # noqa: PLC0415 - imports torch

    estimate_options = EstimateOptions(**{k: options[k] for k in ("q", "epochs", "lr", "batch")})
    skew_triplets = np.empty((len(clients), 3))
    for skew_triplet, client in zip(skew_triplets, clients.tolist(), strict=True):
        shuffle_rng = new_generator(options["seed"], "dht", round, client)
        with seeded_torch(options["seed"], "dht_dropout", round, client):
            group_counts = estimate_group_counts(access.copy, *access.samples(client), estimate_options, shuffle_rng)
            skew_triplet[:] = skew.skew_triplet(group_counts)
    return skew_triplets


def count_query_passes(options: Mapping[str, Any], label_counts: Int64[np.ndarray, "clients classes"]) -> Values:
    """Return the cost of the query in forward passes over each client's training set, [len(clients)].

    Args:
        options: `epochs`, the number of epochs of the models that a client trains for its estimate.
        label_counts: samples of each queried client and class, [len(clients), C].
    """
    n_classes, n_samples = label_counts.shape[1], label_counts.sum(1)
    n_trained_models = (label_counts > 0).sum(1) if n_classes > 2 else np.ones(len(n_samples))
    return np.asarray(3.0 * options["epochs"] * (n_trained_models + label_counts.max(1) / np.maximum(n_samples, 1)) + 2)


signal = Computed(
    reveals="a client's imbalance of classes and of estimated attributes, and how they are correlated",
    bytes_up=4,
    passes=count_query_passes,
    compute=estimate_skew_triplets,
    requirement=ONE_CLASS_PER_SAMPLE,
)
