"""The losses that fair aggregators weigh by, as reported by the clients (signals of `fedcohort/signal/`).

    loss:  F_i(w_t), queried before training, for a forward pass
    train_loss:  mean of the mini-batch losses, each before its step, a by-product of training
    loss_post:  F_i(y_i) of the model that the client has trained, for a forward pass

In general each is smaller than the one before, and differs less between clients.
"""

import numpy as np

from fedcohort.agg.base import Arrived
from fedcohort.types import Ids, Values

SIGNALS = ("loss", "train_loss", "loss_post")
MAX_LOSS = 1e100  # nats; larger reports count as this, so that products stay finite


def read_losses(arrived: Arrived, signal: str, cap: float | None) -> tuple[Ids, Values]:
    """Return the rows of `outcome.clients` that are weighed, and their losses in nats, not negative.

    Clients whose loss is not finite, or to whom the selector's advice gives no weight, are left out. A cross-entropy is
    not negative, so that reports below 0 count as 0. With fewer than half of the weighed clients lying, the median is
    at most the largest honest loss, and every capped loss at most `cap` times that.

    Args:
        arrived: the round's updates.
        signal: name of the loss signal.
        cap: losses above cap times their median are reduced to that; None for no cap.
    """
    losses = np.asarray(arrived.outcome.signals[signal], dtype=np.float64)
    rows = np.flatnonzero(np.isfinite(losses) & (arrived.weights > 0))
    losses_weighed: Values = np.clip(losses[rows], 0.0, MAX_LOSS)
    if cap is not None and len(rows):
        losses_weighed = np.minimum(losses_weighed, cap * np.median(losses_weighed))
    return rows, losses_weighed


def scatter_weights(arrived: Arrived, rows: Ids, weights: Values) -> Values:
    """Return the `weights` of `rows` among all of `outcome.clients`, [m], 0 for the others."""
    out = np.zeros(len(arrived.weights))
    out[rows] = weights
    return out


def normalised_weights(arrived: Arrived, rows: Ids) -> Values:
    """Return the weights that `rows` arrived with, normalised over these rows."""
    share: Values = arrived.weights[rows] / arrived.weights[rows].sum()
    return share
