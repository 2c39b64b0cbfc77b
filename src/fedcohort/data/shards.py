"""The clients' shares E_k of the test split: their own rows, or dealt in their class proportions."""

import numpy as np
from jaxtyping import Int64

from fedcohort.data.ragged import Ragged
from fedcohort.types import Ids

Counts = Int64[np.ndarray, "clients classes"]


def natural_owners(owner: Ids, parts: Ragged) -> Ids | None:
    """The owner of each part, [K], or None where a part has none or several or two parts have the same. owner: [N]."""
    if (parts.sizes == 0).any():
        return None
    found, starts = owner[parts.rows], parts.offsets[:-1]
    first: Ids = found[starts]
    several = (np.minimum.reduceat(found, starts) != first) | (np.maximum.reduceat(found, starts) != first)
    return None if several.any() or len(np.unique(first)) < len(parts) else first


def split_by_owner(test_owner: Ids, owners: Ids) -> Ragged:
    """Return the positions of each owner's rows, sorted."""
    order = np.argsort(test_owner, kind="stable")
    starts, stops = (np.searchsorted(test_owner[order], owners, side) for side in ("left", "right"))
    sizes = stops - starts
    places = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return Ragged.from_sizes(order[places], sizes)


def deal(labels: Ids, counts: Counts, rng: np.random.Generator) -> Ragged:
    """Deal rows out by class: the sorted positions of each client's share; disjoint.

    Args:
        labels: of the test split, int64 [N].
        counts: as in `quotas`.
        rng: for the order in which rows are dealt.
    """
    shares = quotas(counts, np.bincount(labels, minlength=counts.shape[1]), rng)
    rows, takers = [], []
    for c, quota in enumerate(shares.T):
        of_class = rng.permutation(np.flatnonzero(labels == c))
        rows.append(of_class[: quota.sum()])
        takers.append(np.repeat(np.arange(len(counts)), quota))
    given, taker = np.concatenate(rows), np.concatenate(takers)
    return Ragged.from_sizes(given[np.lexsort((given, taker))], shares.sum(1))


def quotas(counts: Counts, pool: Ids, rng: np.random.Generator) -> Counts:
    """Test rows of each class for each client, in the proportions of what it holds for training.

        target_kc = pool_c counts_kc / sum_j counts_jc,   rounded by largest remainders so that column c sums to pool_c

    What rounding took from a client or gave to it is carried to its next class, so that a client's total follows its
    size too. Equal remainders are served in a random order. Of a class that no client holds, nobody gets rows.
    counts: training samples. pool: test rows of each class, [C].
    """
    out = np.zeros_like(counts)
    carry = rng.random(len(counts)) * 1e-6
    for c in np.flatnonzero((counts.sum(0) > 0) & (pool > 0)):
        holders = np.flatnonzero(counts[:, c])
        target = pool[c] * counts[holders, c] / counts[:, c].sum()
        out[holders, c] = nearest(target + carry[holders], int(pool[c]))
        carry[holders] += target - out[holders, c]
    return out


def nearest(want: np.ndarray, total: int) -> Ids:
    """Return integers >= 0 that sum to `total`, nearest to `want` [n].

    The largest shortfalls are corrected first.
    """
    counts: Ids = np.maximum(np.floor(want), 0).astype(np.int64)
    while (short := total - int(counts.sum())) != 0:
        step = int(np.sign(short))
        free = np.flatnonzero(counts + step >= 0)
        order = free[np.argsort(step * (counts - want)[free], kind="stable")]
        counts[order[: abs(short)]] += step
    return counts
