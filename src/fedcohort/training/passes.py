"""Passes over a client's samples: their order, their mini-batches, and the losses that they record."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from fedcohort.types import Ids, Values

Pieces = list[tuple[int, int]]  # mini-batches, as [start, stop) of a pass's order


def cut_into_batches(n: int, batch: int, merge_last: bool) -> Pieces:
    """Cut [0, n) into mini-batches of `batch` samples, of which the last may be shorter.

    merge_last: whether a last mini-batch of one sample joins the one before it, as batch norm needs two samples.
    """
    starts = list(range(0, n, batch))
    if merge_last and len(starts) > 1 and n - starts[-1] == 1:
        starts.pop()
    return list(itertools.pairwise([*starts, n]))


def draw_passes(rng: np.random.Generator, n: int, pieces: Pieces, steps: int) -> list[tuple[Ids, Pieces]]:
    """Return passes with `steps` mini-batches in all, each in another random order; the last pass may be incomplete."""
    return [(rng.permutation(n), pieces[: steps - done]) for done in range(0, steps, len(pieces))]


def count_pieces(n: Ids, batch: int | None, merge_last: bool) -> Ids:
    """Return the number of mini-batches that `cut_into_batches` makes of n samples, in the shape of n.

    Args:
        n: numbers of samples.
        batch: samples of a mini-batch; None for all samples at once.
        merge_last: whether a last mini-batch of one sample joins the one before it.
    """
    pieces: Ids = np.minimum(n, 1) if batch is None else -(-n // batch)
    if not merge_last or batch is None:
        return pieces
    merged: Ids = pieces - ((pieces > 1) & (n - (pieces - 1) * batch == 1))
    return merged


def count_dealt(n: Ids, batch: int | None, merge_last: bool, steps: "Ids | int") -> Ids:
    """Return the number of samples, repetitions included, in `steps` mini-batches of `draw_passes`, in the shape of n.

    These are complete passes, and full mini-batches of the last pass, as only a pass's last mini-batch is not full.
    """
    passes, further_steps = np.divmod(steps, np.maximum(count_pieces(n, batch, merge_last), 1))
    samples: Ids = passes * n + further_steps * (batch or 0)
    return samples


def endless_batches(rng: np.random.Generator, n: int, batch: int) -> Iterator[Ids]:
    """Yield the positions of mini-batches, pass after pass, without end; nothing if there are no samples."""
    pieces = cut_into_batches(n, batch, False)
    while pieces:
        order = rng.permutation(n)
        yield from (order[start:stop] for start, stop in pieces)


class LossRecord:
    """Records the losses of one client's local training.

    Attributes:
        first: cross-entropy of each sample before its first step, in nats, [n]; NaN for an unused sample.
    """

    def __init__(self, n: int) -> None:
        self.first = np.full(n, np.nan)
        self._losses: list[Values] = [np.empty(0)]
        self._sizes: list[Ids] = [np.empty(0, np.int64)]

    def add(self, order: Ids, pieces: Sequence[tuple[int, int]], losses: Values) -> None:
        """Record one pass.

        Args:
            order: positions of the samples in the order of the pass.
            pieces: mini-batches as [start, stop) of this order.
            losses: cross-entropy of each sample before its step, in nats, in the same order.
        """
        starts, stops = np.array(pieces).T
        losses = losses[: stops[-1]]
        self._sizes.append(stops - starts)
        self._losses.append(np.add.reduceat(losses, starts) / (stops - starts))
        samples = order[: len(losses)]
        self.first[samples] = np.where(np.isnan(self.first[samples]), losses, self.first[samples])

    @property
    def batch_loss(self) -> Values:
        """Mean cross-entropy of each mini-batch, in nats, [steps]."""
        return np.concatenate(self._losses)

    @property
    def batch_size(self) -> Ids:
        """Number of samples of each mini-batch, [steps]."""
        return np.concatenate(self._sizes)
