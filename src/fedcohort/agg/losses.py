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
    """Return the positions in `outcome.clients` of the clients with a valid loss, and these losses in nats, at least 0.

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
    weighed_losses: Values = np.clip(losses[rows], 0.0, MAX_LOSS)
    if cap is not None and len(rows):
        weighed_losses = np.minimum(weighed_losses, cap * np.median(weighed_losses))
    return rows, weighed_losses


def scatter_weights(arrived: Arrived, rows: Ids, weights: Values) -> Values:
    """Return a weight for every arrived client, [m]: `weights` at the positions `rows`, 0 elsewhere."""
    out = np.zeros(len(arrived.weights))
    out[rows] = weights
    return out


def normalised_weights(arrived: Arrived, rows: Ids) -> Values:
    """Return the aggregation weights of the arrived clients at the positions `rows`, which sum to 1, [len(rows)]."""
    share: Values = arrived.weights[rows] / arrived.weights[rows].sum()
    return share
