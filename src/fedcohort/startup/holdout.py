"""Which training rows are used at all, and which of them the server keeps for validation."""

from dataclasses import replace

import numpy as np

from fedcohort.data.places import CHUNK, keep_first, rank, shuffled
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError
from fedcohort.rng import generator
from fedcohort.types import Ids

LEAST = 3  # samples of a client: one to train on, two in V_k
SPARED = 2  # rows of a class beyond its share, rounded up, that stand for those that other owners can't spare


def thin(raw: Raw, limit: int | None, seed: int) -> Raw:
    """Keep about `limit` training rows: a random share of each class, or of each owner.

    An owner keeps at least LEAST of its rows. The test split stays whole.
    """
    if limit is None or limit >= len(raw.train_y):
        return raw
    groups = raw.train_class if raw.train_owner is None else raw.train_owner
    sizes = np.bincount(groups)
    quota = np.maximum(np.floor(sizes * (limit / len(groups)) + 0.5), LEAST)
    rows = np.flatnonzero(rank(groups, shuffled(len(groups), generator(seed, "limit"))) < quota[groups])
    return replace(
        raw,
        train_x=raw.train_x[rows],
        train_y=raw.train_y[rows],
        train_owner=None if raw.train_owner is None else raw.train_owner[rows],
        train_attribute=None if raw.train_attribute is None else raw.train_attribute[rows],
    )


def past(held: Ids, rows: Ids) -> Ids:
    """Return the positions among all samples of `rows`, which count those alone that aren't `held` (sorted)."""
    found: Ids = np.searchsorted(held - np.arange(len(held)), rows, side="right")
    found += rows
    return found


def server_rows(raw: Raw, share: float, rng: np.random.Generator) -> Ids:
    """Draw the positions of server_val, sorted: `share` of each class, rounded up or down.

    Their number is `share` of all rows, so that a class much larger than many others has what their rounding leaves.
    Where owners can't spare as many they are fewer: of no class are more than SPARED beyond its share taken in place of
    another's. There are none where the dataset brings the server's validation data.
    """
    if raw.valid is not None:
        return np.empty(0, dtype=np.int64)
    y, n, wanted = raw.train_class, raw.n_strata, max(1, round(share * len(raw.train_y)))
    place = rank(y, shuffled(len(y), rng))
    first, sizes, in_class = rng.random(n), np.bincount(y, minlength=n), np.empty(len(y))
    for start in range(0, len(y), CHUNK):  # arrays of all rows are large: the inputs may be but ten times as large
        piece = slice(start, start + CHUNK)
        in_class[piece] = (first[y[piece]] + place[piece]) / sizes[y[piece]]
    del place
    if raw.train_owner is not None:
        in_class[rank(raw.train_owner, shuffled(len(y), rng)) < LEAST] = np.inf
    rows = np.flatnonzero(in_class <= np.partition(in_class, wanted - 1)[wanted - 1])  # those wanted, and equal ones
    rows = rows[np.argsort(in_class[rows], kind="stable")[:wanted]]
    if raw.train_owner is not None:
        rows = keep_first(rows, y, np.ceil(share * sizes).astype(np.int64) + SPARED)
    rows = np.sort(rows[np.isfinite(in_class[rows])])
    if len(rows) == 0:
        cure = f"; {raw.small_client_remedy}" if raw.small_client_remedy else ""
        raise DataError(
            f"dataset={raw.name}: no owner has more than {LEAST} training samples, none is left for server_val{cure}"
        )
    return rows
