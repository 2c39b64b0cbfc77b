"""Prepare the rows of a user's tables: cut a test part, drop or fill gaps, standardise.

All statistics are those of the training rows, those included that the server keeps of them for validation. Rows of a
test or a validation file never count.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedcohort.data.places import keep_first, rank_within_group
from fedcohort.dataset import cells
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.types import Ids

PARTS = ("training", "test", "validation")
MIN_TRAINING_ROWS = 4  # of every client: three for itself, one to spare for the server


def held_out(labels: Ids, owner: Ids | None, share: float, rng: np.random.Generator) -> Ids:
    """Draw a test part: `share` of each class of each client, rounded up or down.

    Fewer rows are drawn where clients can't spare as many, and no other client's rows replace them. The last row of
    each class, in a random order, stays in training, and so do the last MIN_TRAINING_ROWS of each client.

    Args:
        labels: int64 [N].
        owner: the client of each row, int64 [N]; None if rows have none.
        share: share of the rows that are cut, in (0, 1).
        rng: for the order of the rows.

    Returns:
        Sorted positions.

    Raises:
        DataError: if no row can be cut.
    """
    groups = labels if owner is None else np.unique(np.stack([owner, labels]), axis=1, return_inverse=True)[1].ravel()
    order = rng.permutation(len(labels))
    place = (rank_within_group(groups, order) + rng.random(1 + groups.max())[groups]) / np.bincount(groups)[groups]
    place[rank_within_group(labels, order[::-1]) == 0] = np.inf
    if owner is not None:
        place[rank_within_group(owner, order[::-1]) < MIN_TRAINING_ROWS] = np.inf
    rows = np.argsort(place, kind="stable")[: max(1, round(share * len(labels)))]
    rows = keep_first(rows, groups, np.floor(share * np.bincount(groups)).astype(np.int64) + 1)
    rows = np.sort(rows[np.isfinite(place[rows])])
    if not len(rows):
        cure = "dataset.min_client_samples=10 dataset.pool_small=true pools small clients"
        raise DataError(
            f"dataset.test_share={share}: there are too few rows of each class and client to cut any of {len(labels)}"
            f"{'' if owner is None else f'; {cure}'}"
        )
    return rows


def complete(
    frame: Frame, columns: Sequence[str], numbers: Sequence[str], features: Sequence[str], window: int
) -> tuple[Frame, str]:
    """Return the frame without the samples in which a cell is missing, and a note on how many these are.

    Args:
        frame: the table.
        columns: columns of labels, clients, categories and dates; those that the table lacks don't count.
        numbers: the columns of numbers that are features.
        features: the columns of lists or images that are features.
        window: rows of a sample.

    Raises:
        DataError: if no sample is complete.
    """
    gaps = np.zeros(frame.table.num_rows, dtype=bool)
    for name in columns:
        if name in frame.names:
            gaps |= cells.empty(frame.column(name))
    if numbers:
        gaps |= np.isnan(frame.numbers(list(numbers), gaps=True)).any(1)
    for name in features:
        gaps |= cells.empty(frame.column(name))
        rows = np.flatnonzero(~gaps)
        if len(rows):
            x = frame.take(rows).arrays(name, gaps=True)
            gaps[rows] |= np.isnan(x.reshape(len(x), -1)).any(1) if x.dtype.kind == "f" else False
    gaps = np.repeat(gaps.reshape(-1, window).any(1), window)
    if gaps.all():
        raise DataError(f"dataset.missing=drop: {frame.where} has no row without a missing cell")
    if not gaps.any():
        return frame, ""
    note = f"{gaps.sum()} of {len(gaps)} rows of {Path(frame.where).name} dropped, cells are missing"
    return frame.take(np.flatnonzero(~gaps)), note


def fill(train: Frame, names: Sequence[str], x: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Return the inputs with the means of the training rows where they are NaN, and a note on how many these are.

    Args:
        train: the training table.
        names: the columns of numbers, or of lists.
        x: the inputs of each of PARTS that there is.

    Raises:
        DataError: if a feature has no number in any training row.
    """
    mean = means(x[0])
    if np.isnan(mean).any():
        position = int(np.isnan(mean.reshape(-1)).argmax())
        name = names[position if len(names) == mean.size else position * len(names) // mean.size]
        raise train.error(name, f": column {name!r} has no number in any training row to take the mean of")
    counts = [int(np.isnan(part_x).sum()) for part_x in x]
    note = ""
    if any(counts):
        words = [f"{n} {part}" for n, part in zip(counts, PARTS, strict=False)]
        all_words = " and ".join([", ".join(words[:-1]), words[-1]])
        note = f"{all_words} cells filled with the means of the training rows"
    return [np.where(np.isnan(part_x), mean, part_x) for part_x in x], note


def standardise(x: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Standardise all parts in place, and return each feature's mean and deviation over the training rows.

    x: the inputs of each of PARTS that there is.
    """
    mean, sd = moments(x[0])
    for part_x in x:
        part_x -= mean
        part_x /= sd
    return mean, sd


def means(train_x: np.ndarray) -> np.ndarray:
    """Return the mean of each feature over the training rows that have it, NaN if none has."""
    present = ~np.isnan(train_x)
    counts = present.sum(0)
    total = np.where(present, train_x, 0).sum(0, dtype=np.float64)
    mean: np.ndarray = np.divide(total, counts, out=np.full(total.shape, np.nan), where=counts > 0)
    return mean.astype(np.float32)


def moments(train_x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and deviation of each feature over the training rows, float32; 1 for one that never varies."""
    sd = np.where(train_x.max(0) > train_x.min(0), train_x.std(0, dtype=np.float64), 1.0)
    return train_x.mean(0, dtype=np.float64).astype(np.float32), sd.astype(np.float32)
