"""The losses that fair aggregators weigh by, as reported by the clients (signals of `fedcohort/signal/`).

    loss:  F_i(w_t), queried before training, for a forward pass
    train_loss:  mean of the mini-batch losses, each before its step, a by-product of training
    loss_post:  F_i(y_i) of the model that the client has trained, for a forward pass

In general each is smaller than the one before, and differs less between clients.
"""

import numpy as np

from fedcohort.agg.base import Arrived
from fedcohort.types import Ids, Values

LOSS_SIGNALS = ("loss", "train_loss", "loss_post")
MAX_LOSS = 1e100  # nats; larger reports count as this, so that products stay finite


def read_valid_losses(arrived: Arrived, loss_signal: str, loss_cap: float | None) -> tuple[Ids, Values]:
    """Return the positions in `outcome.clients` of the clients with a valid loss, [n], and these losses, [n].

    The losses are in nats, at least 0. Clients with a loss that is not finite, or with weight 0, are left out. A
    cross-entropy is not negative, so that reports below 0 count as 0. If fewer than half of these clients lie, the
    median is at most the largest honest loss, and every capped loss at most `loss_cap` times the largest honest loss.

    Args:
        arrived: the round's updates.
        loss_signal: name of the loss signal.
        loss_cap: losses above `loss_cap` times their median are reduced to this limit; None for no limit.
    """
    reported_losses = np.asarray(arrived.outcome.signals[loss_signal], dtype=np.float64)
    positions_with_loss = np.flatnonzero(np.isfinite(reported_losses) & (arrived.weights > 0))
    valid_losses: Values = np.clip(reported_losses[positions_with_loss], 0.0, MAX_LOSS)
    if loss_cap is not None and len(positions_with_loss):
        valid_losses = np.minimum(valid_losses, loss_cap * np.median(valid_losses))
    return positions_with_loss, valid_losses


def spread_weights_to_clients(arrived: Arrived, update_positions: Ids, weights: Values) -> Values:
    """Return a weight for each client of `arrived`, [m]: `weights` for those at `update_positions`, 0 for others."""
    arrival_weights = np.zeros(len(arrived.weights))
    arrival_weights[update_positions] = weights
    return arrival_weights


def normalised_weights(arrived: Arrived, update_positions: Ids) -> Values:
    """Return the weights of the n clients of `arrived` at `update_positions`, [n], scaled to the sum 1."""
    scaled_weights: Values = arrived.weights[update_positions] / arrived.weights[update_positions].sum()
    return scaled_weights
