"""What is done to a user's own rows before they are dealt: a test part is cut, gaps are filled, inputs standardised.

Statistics are those of the training rows alone, the server's validation rows among them; no test row ever counts.
"""

import numpy as np

from fedcohort.errors import DataError
from fedcohort.types import Ids

KEPT = 4  # training rows that every client keeps: three for itself, one to spare for the server


def held_out(labels: Ids, owner: Ids | None, share: float, rng: np.random.Generator) -> Ids:
    """Draw a test part: sorted positions, `share` of each class of each client, to within one row.

    The last row of each class, in a random order, stays, and so do the last KEPT of each client.

    Args:
        labels: int64 [N].
        owner: the client of each row, int64 [N]; None where rows have none.
        share: of the rows that are cut, in (0, 1).
        rng: for the order of the rows.

    Raises `DataError` where nothing is left to cut.
    """
    groups = labels if owner is None else np.unique(np.stack([owner, labels]), axis=1, return_inverse=True)[1].ravel()
    order = rng.permutation(len(labels))
    place = (_rank(groups, order) + rng.random(1 + groups.max())[groups]) / np.bincount(groups)[groups]
    place[_rank(labels, order[::-1]) == 0] = np.inf
    if owner is not None:
        place[_rank(owner, order[::-1]) < KEPT] = np.inf
    rows = np.argsort(place, kind="stable")[: max(1, round(share * len(labels)))]
    rows = np.sort(rows[np.isfinite(place[rows])])
    if not len(rows):
        raise DataError(
            f"dataset.test_share={share}: there are too few rows of each class and client to cut any of {len(labels)}"
        )
    return rows


def _rank(groups: Ids, order: Ids) -> Ids:
    """The place of each row among those of its group, in `order`, counted from 0."""
    by_group = order[np.argsort(groups[order], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    rank = np.empty(len(groups), dtype=np.int64)
    rank[by_group] = np.arange(len(groups)) - starts[groups[by_group]]
    return rank


def draw_of_each(groups: Ids, quota: Ids, rng: np.random.Generator) -> np.ndarray:
    """Draw so many rows of each group: whether each row is drawn, bool [N]. quota: by group."""
    drawn: np.ndarray = _rank(groups, rng.permutation(len(groups))) < quota[groups]
    return drawn


def means(train_x: np.ndarray) -> np.ndarray:
    """Return the mean of each feature over the training rows that have it, NaN where none does."""
    known = ~np.isnan(train_x)
    counts = known.sum(0)
    total = np.where(known, train_x, 0).sum(0, dtype=np.float64)
    mean: np.ndarray = np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)
    return mean.astype(np.float32)


def fill_missing(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return `x` with the mean of its feature where a number is missing."""
    return np.where(np.isnan(x), mean, x)


def moments(train_x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature over the training rows, float32; 1 for one that never varies."""
    sd = np.where(train_x.max(0) > train_x.min(0), train_x.std(0, dtype=np.float64), 1.0)
    return train_x.mean(0, dtype=np.float64).astype(np.float32), sd.astype(np.float32)
