"""The losses that fair aggregators weigh by, as clients report them: words of `signal/`.

    loss         F_i(w_t), asked for before training: a forward pass
    train_loss   of the mini-batches, each before its step: a free by-product of training
    loss_post    F_i(y_i), of what the client has trained: a forward pass

As a rule each is lower than the one before, and more alike between clients.
"""

import numpy as np

from fedcohort.agg.base import Arrived
from fedcohort.types import Ids, Values

WORDS = ("loss", "train_loss", "loss_post")
LARGEST = 1e100  # nats; a claim beyond it counts as this, so that what is made of it stays finite


def read_losses(arrived: Arrived, word: str, cap: float | None) -> tuple[Ids, Values]:
    """Which rows of `outcome.clients` are weighed, and their losses in nats, not negative.

    Left out are clients whose loss is not finite, and those to whom the selector's advice gives no weight. A
    cross-entropy is not negative: a claim below 0 counts as 0. cap: losses above cap times their median count as that.
    Where fewer than half of those weighed lie, the median is at most the largest honest loss, and so is every loss at
    most cap times that.
    """
    losses = np.asarray(arrived.outcome.signals[word], dtype=np.float64)
    rows = np.flatnonzero(np.isfinite(losses) & (arrived.weights > 0))
    weighed: Values = np.clip(losses[rows], 0.0, LARGEST)
    if cap is not None and len(rows):
        weighed = np.minimum(weighed, cap * np.median(weighed))
    return rows, weighed


def over_all(arrived: Arrived, rows: Ids, weights: Values) -> Values:
    """`weights` of `rows` among all of `outcome.clients`, 0 for the others."""
    out = np.zeros(len(arrived.weights))
    out[rows] = weights
    return out


def shares(arrived: Arrived, rows: Ids) -> Values:
    """The weights that `rows` arrived with, normalised over them."""
    share: Values = arrived.weights[rows] / arrived.weights[rows].sum()
    return share
