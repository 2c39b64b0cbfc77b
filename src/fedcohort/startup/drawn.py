"""Which training rows are used at all, and which of them the server keeps for validation."""

from dataclasses import replace

import numpy as np

from fedcohort.data.places import rank
from fedcohort.dataset.base import Raw
from fedcohort.errors import DataError
from fedcohort.rng import generator
from fedcohort.types import Ids

LEAST = 3  # samples of a client: one to train on, two in V_k


def thin(raw: Raw, limit: int | None, seed: int) -> Raw:
    """Keep about `limit` training rows: a random share of each class, or of each owner.

    An owner keeps at least LEAST of its rows. The test split stays whole.
    """
    if limit is None or limit >= len(raw.train_y):
        return raw
    groups = raw.train_class if raw.train_owner is None else raw.train_owner
    sizes = np.bincount(groups)
    quota = np.maximum(np.floor(sizes * (limit / len(groups)) + 0.5), LEAST)
    rows = np.flatnonzero(rank(groups, generator(seed, "limit").permutation(len(groups))) < quota[groups])
    return replace(
        raw,
        train_x=raw.train_x[rows],
        train_y=raw.train_y[rows],
        train_owner=None if raw.train_owner is None else raw.train_owner[rows],
        train_attribute=None if raw.train_attribute is None else raw.train_attribute[rows],
    )


def rows_beside(rows: Ids, n: int) -> Ids:
    """Return the positions below n that are not in `rows`, sorted."""
    free = np.ones(n, dtype=bool)
    free[rows] = False
    return np.flatnonzero(free)


def server_rows(raw: Raw, share: float, rng: np.random.Generator) -> Ids:
    """Draw the positions of server_val, sorted: `share` of each class to within one row.

    They are fewer where owners can't spare them, and none where the dataset brings the server's validation data.
    """
    if raw.valid is not None:
        return np.empty(0, dtype=np.int64)
    y, n, wanted = raw.train_class, raw.n_strata, max(1, round(share * len(raw.train_y)))
    place = rank(y, rng.permutation(len(y)))
    in_class = rng.random(n)[y]
    in_class += place
    del place  # arrays of all rows, of which a large population's inputs are but ten times as large
    in_class /= np.bincount(y, minlength=n)[y]
    if raw.train_owner is not None:
        in_class[rank(raw.train_owner, rng.permutation(len(y))) < LEAST] = np.inf
    rows = np.argsort(in_class, kind="stable")[:wanted]
    rows = np.sort(rows[np.isfinite(in_class[rows])])
    if len(rows) == 0:
        raise DataError(
            f"dataset={raw.name}: no owner has more than {LEAST} training samples, none is left for server_val"
        )
    return rows
