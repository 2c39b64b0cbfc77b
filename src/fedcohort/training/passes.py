"""Passes over a client's samples: their order, their mini-batches, and the losses before each step."""

import itertools
from collections.abc import Iterator

import numpy as np

from fedcohort.types import Ids, Values

BatchRanges = list[tuple[int, int]]  # mini-batches, as [start, stop) of a pass's order
PassOrders = list[tuple[Ids, BatchRanges]]  # order of the samples and mini-batches of each pass


def cut_into_batches(n_samples: int, batch_size: int, merge_last_batch: bool) -> BatchRanges:
    """Cut [0, n_samples) into mini-batches of `batch_size` samples, of which the last may be shorter.

    merge_last_batch: whether a last mini-batch of one sample joins the one before it, as batch norm needs two samples.
    """
    batch_starts = list(range(0, n_samples, batch_size))
    if merge_last_batch and len(batch_starts) > 1 and n_samples - batch_starts[-1] == 1:
        batch_starts.pop()
    return list(itertools.pairwise([*batch_starts, n_samples]))


def draw_sample_passes(rng: np.random.Generator, n_samples: int, batch_ranges: BatchRanges, n_steps: int) -> PassOrders:
    """Return passes with `n_steps` mini-batches in all, each in a random order drawn from `rng`.

    The last pass may be incomplete. `batch_ranges` are the mini-batches of a pass over `n_samples` samples.
    """
    steps_before_pass = range(0, n_steps, len(batch_ranges))  # steps before each pass
    return [(rng.permutation(n_samples), batch_ranges[: n_steps - n]) for n in steps_before_pass]


def count_batches(n_samples: Ids, batch_size: int | None, merge_last_batch: bool) -> Ids:
    """Return the number of mini-batches that `cut_into_batches` makes of each number of samples, [n].

    Args:
        n_samples: numbers of samples, [n].
        batch_size: samples of a mini-batch; None for all samples at once.
        merge_last_batch: whether a last mini-batch of one sample joins the one before it.
    """
    n_full_batches: Ids = np.minimum(n_samples, 1) if batch_size is None else -(-n_samples // batch_size)
    if not merge_last_batch or batch_size is None:
        return n_full_batches
    n_batches: Ids = n_full_batches - ((n_full_batches > 1) & (n_samples - (n_full_batches - 1) * batch_size == 1))
    return n_batches


def count_sample_uses(n_samples: Ids, batch_size: int | None, merge_last_batch: bool, n_steps: "Ids | int") -> Ids:
    """Return the number of samples, repetitions included, in the first mini-batches of `draw_sample_passes`.

    Args:
        n_samples: numbers of samples, [n].
        batch_size: samples of a mini-batch; None for all samples at once.
        merge_last_batch: whether a last mini-batch of one sample joins the one before it.
        n_steps: number of mini-batches, [n] or one for all.

    Returns:
        Numbers of samples, [n]. Only the last mini-batch of a pass may have another number than `batch_size`.
    """
    n_batches = np.maximum(count_batches(n_samples, batch_size, merge_last_batch), 1)
    n_passes, n_further_steps = np.divmod(n_steps, n_batches)
    n_sample_uses: Ids = n_passes * n_samples + n_further_steps * (batch_size or 0)
    return n_sample_uses


def yield_batches(rng: np.random.Generator, n_samples: int, batch_size: int) -> Iterator[Ids]:
    """Yield the positions of mini-batches of `batch_size` in random passes over `n_samples` samples, without end.

    Positions are [batch_size], fewer at the end of a pass, in an order drawn from `rng`. Without samples it yields
    nothing.
    """
    batch_ranges = cut_into_batches(n_samples, batch_size, False)
    while batch_ranges:
        sample_order = rng.permutation(n_samples)
        yield from (sample_order[a:b] for a, b in batch_ranges)


def flatten_mini_batches(pass_orders: PassOrders) -> tuple[Ids, Ids]:
    """Return the samples of all mini-batches in order, [samples], and the size of each mini-batch, [steps].

    `pass_orders` has the order of the samples and the mini-batches of each pass.
    """
    sample_order = np.concatenate([np.empty(0, np.int64), *(pass_order[: r[-1][1]] for pass_order, r in pass_orders)])
    return sample_order, np.array([b - a for _, r in pass_orders for a, b in r], dtype=np.int64)


def summarise_losses(n_samples: int, pass_orders: PassOrders, losses: Values) -> tuple[Values, Ids, Values]:
    """Return the mean loss of each mini-batch [steps], its size [steps], and the first loss of each sample [n].

    Args:
        n_samples: number of samples.
        pass_orders: order of the samples and mini-batches of each pass.
        losses: cross-entropy of each sample before its step, in nats, in the order of all passes' mini-batches.

    Returns:
        The first loss of a sample that was not trained on is NaN. After several passes it is the first that is not NaN.
    """
    sample_order, batch_sizes = flatten_mini_batches(pass_orders)
    first_losses = np.full(n_samples, np.nan)
    if len(pass_orders) > 1:
        has_loss = ~np.isnan(losses)
        first_losses[sample_order[has_loss][::-1]] = losses[has_loss][::-1]  # a sample's first loss is written last
    else:
        first_losses[sample_order] = losses
    batch_loss_sums = np.add.reduceat(losses, np.cumsum(batch_sizes) - batch_sizes) if len(batch_sizes) else np.empty(0)
    return batch_loss_sums / batch_sizes, batch_sizes, first_losses
