"""Passes over a client's samples: their order, their mini-batches, and the losses before each step."""

import itertools
from collections.abc import Iterator

import numpy as np

from fedcohort.types import Ids, Values

Pieces = list[tuple[int, int]]  # mini-batches, as [start, stop) of a pass's order
Passes = list[tuple[Ids, Pieces]]  # order of the samples and mini-batches of each pass


def cut_into_batches(n: int, batch: int, merge_last: bool) -> Pieces:
    """Cut [0, n) into mini-batches of `batch` samples, of which the last may be shorter.

    merge_last: whether a last mini-batch of one sample joins the one before it, as batch norm needs two samples.
    """
    starts = list(range(0, n, batch))
    if merge_last and len(starts) > 1 and n - starts[-1] == 1:
        starts.pop()
    return list(itertools.pairwise([*starts, n]))


def draw_passes(rng: np.random.Generator, n: int, pieces: Pieces, steps: int) -> Passes:
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


def flatten_passes(passes: Passes) -> tuple[Ids, Ids]:
    """Return the samples of all mini-batches in their order, and the number of samples of each mini-batch, [steps]."""
    samples = np.concatenate([np.empty(0, np.int64), *(order[: pieces[-1][1]] for order, pieces in passes)])
    return samples, np.array([stop - start for _, pieces in passes for start, stop in pieces], dtype=np.int64)


def summarise_losses(n: int, passes: Passes, losses: Values) -> tuple[Values, Ids, Values]:
    """Return the mean loss of each mini-batch [steps], its size [steps], and the first loss of each sample [n].

    Args:
        n: number of samples.
        passes: order of the samples and mini-batches of each pass.
        losses: cross-entropy of each sample before its step, in nats, in the order of all passes' mini-batches.

    Returns:
        The first loss of a sample that was not trained on is NaN.
    """
    samples, sizes = flatten_passes(passes)
    first, is_number = np.full(n, np.nan), ~np.isnan(losses)
    first[samples[is_number][::-1]] = losses[is_number][::-1]  # the first loss of a sample is written last
    sums = np.add.reduceat(losses, np.cumsum(sizes) - sizes) if len(sizes) else np.empty(0)
    return sums / sizes, sizes, first
