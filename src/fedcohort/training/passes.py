"""Passes over a client's samples: in what order, cut into which mini-batches, and the losses seen on the way."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from fedcohort.types import Ids, Values

Pieces = list[tuple[int, int]]  # mini-batches, as [start, stop) of a pass's order


def cut(n: int, batch: int, merge_last: bool) -> Pieces:
    """Cut [0, n) into pieces of `batch`; the last one may be shorter.

    merge_last: a last piece of one joins the one before it, as batch norm needs two.
    """
    starts = list(range(0, n, batch))
    if merge_last and len(starts) > 1 and n - starts[-1] == 1:
        starts.pop()
    return list(itertools.pairwise([*starts, n]))


def deal(rng: np.random.Generator, n: int, pieces: Pieces, steps: int) -> list[tuple[Ids, Pieces]]:
    """Deal `steps` mini-batches of n samples: each pass in an order of its own, the last one ends where they do."""
    return [(rng.permutation(n), pieces[: steps - done]) for done in range(0, steps, len(pieces))]


def count_pieces(n: Ids, batch: int | None, merge_last: bool) -> Ids:
    """Count the mini-batches that `cut` makes of each of n samples, as n; batch: None for all samples at once."""
    pieces: Ids = np.minimum(n, 1) if batch is None else -(-n // batch)
    if not merge_last or batch is None:
        return pieces
    merged: Ids = pieces - ((pieces > 1) & (n - (pieces - 1) * batch == 1))
    return merged


def count_dealt(n: Ids, batch: int | None, merge_last: bool, steps: "Ids | int") -> Ids:
    """Count the samples that `deal` deals in `steps` mini-batches of each of n samples, each as often as it is, as n.

    Whole passes, and mini-batches of the last one, of which none but a pass's last is of another size.
    """
    passes, left = np.divmod(steps, np.maximum(count_pieces(n, batch, merge_last), 1))
    samples: Ids = passes * n + left * (batch or 0)
    return samples


def endless(rng: np.random.Generator, n: int, batch: int) -> Iterator[Ids]:
    """Yield the positions of one mini-batch after the other, pass after pass; nothing where there are no samples."""
    pieces = cut(n, batch, False)
    while pieces:
        order = rng.permutation(n)
        yield from (order[start:stop] for start, stop in pieces)


class Seen:
    """The losses of one client's local training, as its passes go by; n: its samples."""

    def __init__(self, n: int) -> None:
        self.first = np.full(n, np.nan)
        self._losses: list[Values] = [np.empty(0)]
        self._sizes: list[Ids] = [np.empty(0, np.int64)]

    def add(self, order: Ids, pieces: Sequence[tuple[int, int]], each: Values) -> None:
        """Take in one pass.

        Args:
            order: which samples came one after the other.
            pieces: how they were cut into mini-batches.
            each: cross-entropy of each sample before the step that it was in, in nats, in the same order.
        """
        starts, stops = np.array(pieces).T
        each = each[: stops[-1]]
        self._sizes.append(stops - starts)
        self._losses.append(np.add.reduceat(each, starts) / (stops - starts))
        new = order[: len(each)]
        self.first[new] = np.where(np.isnan(self.first[new]), each, self.first[new])

    @property
    def batch_loss(self) -> Values:
        return np.concatenate(self._losses)

    @property
    def batch_size(self) -> Ids:
        return np.concatenate(self._sizes)
