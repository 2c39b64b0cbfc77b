"""What is done to a user's own rows before they are dealt: a test part is cut, gaps are filled, inputs standardised.

Statistics are those of the training rows alone, those that the server cuts of them for validation included; no row of a
test or a validation file ever counts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedcohort.data.places import keep_first, rank, shuffled
from fedcohort.dataset import cells
from fedcohort.dataset.table import Frame, file_of, part_of, read
from fedcohort.errors import DataError
from fedcohort.types import Ids

PARTS = ("training", "test", "validation")
KEPT = 4  # training rows that every client keeps: three for itself, one to spare for the server


def files_of(path: str, cut: bool, with_valid: bool, remarks: list[str]) -> list[Frame]:
    """The tables of the folder `path`: train, test (not where it is to be cut of train) and perhaps valid.

    Raises `DataError` where there is no test part and none is to be cut, or both.
    """
    files, valid = [part_of(path, "train")], file_of(path, "valid")
    if file := file_of(path, "test"):
        if cut:
            raise DataError(f"dataset.test_share must be null where there is a test part ({file})")
        files.append(read(file))
    elif not cut:
        also = f"; call {valid.name} test{valid.suffix} where it is to be the test" if valid else ""
        raise DataError(
            f"dataset.path={path} needs test.parquet or test.csv; it holds {Path(files[0].where).name}, of which "
            f"dataset.test_share=0.2 would cut a fifth of the rows{also}"
        )
    if valid is not None and with_valid:
        files.append(read(valid))
    elif valid is not None:
        remarks.append(f"{valid.name} isn't read")
    return files


def held_out(labels: Ids, owner: Ids | None, share: float, rng: np.random.Generator) -> Ids:
    """Draw a test part: sorted positions, `share` of each class of each client, rounded up or down.

    They are fewer where clients can't spare as many: nobody's are taken in place of another's. The last row of each
    class, in a random order, stays, and so do the last KEPT of each client.

    Args:
        labels: int64 [N].
        owner: the client of each row, int64 [N]; None where rows have none.
        share: of the rows that are cut, in (0, 1).
        rng: for the order of the rows.

    Raises `DataError` where nothing is left to cut.
    """
    groups = labels if owner is None else np.unique(np.stack([owner, labels]), axis=1, return_inverse=True)[1].ravel()
    order = rng.permutation(len(labels))
    place = (rank(groups, order) + rng.random(1 + groups.max())[groups]) / np.bincount(groups)[groups]
    place[rank(labels, order[::-1]) == 0] = np.inf
    if owner is not None:
        place[rank(owner, order[::-1]) < KEPT] = np.inf
    rows = np.argsort(place, kind="stable")[: max(1, round(share * len(labels)))]
    rows = keep_first(rows, groups, np.floor(share * np.bincount(groups)).astype(np.int64) + 1)
    rows = np.sort(rows[np.isfinite(place[rows])])
    if not len(rows):
        raise DataError(
            f"dataset.test_share={share}: there are too few rows of each class and client to cut any of {len(labels)}"
        )
    return rows


def rows_of(x: np.ndarray, rows: Ids) -> np.ndarray:
    """Return these rows, sorted positions without repeats; `x` itself where they are all of it."""
    return x if len(rows) == len(x) else x[rows]


def draw_of_each(groups: Ids, quota: Ids, rng: np.random.Generator) -> np.ndarray:
    """Draw so many rows of each group: whether each row is drawn, bool [N]. quota: by group."""
    drawn: np.ndarray = rank(groups, shuffled(len(groups), rng)) < quota[groups]
    return drawn


def complete(
    frame: Frame, columns: Sequence[str], numbers: Sequence[str], features: str | None, remarks: list[str]
) -> Frame:
    """Return the frame without the rows in which something is missing, and say in `remarks` how many they are.

    Args:
        frame: the table.
        columns: of labels and owners, and of features where one column has them all; those that it lacks don't count.
        numbers: the columns of numbers that are features, where features is None.
        features: the one column of lists or images.
        remarks: what people are told.

    Raises `DataError` where no row is left.
    """
    gaps = np.zeros(frame.table.num_rows, dtype=bool)
    for name in columns:
        if name in frame.names:
            gaps |= cells.empty(frame.column(name))
    if features is None:
        gaps |= np.isnan(frame.numbers(list(numbers), gaps=True)).any(1)
    elif not gaps.all():
        there = np.flatnonzero(~gaps)
        x = frame.take(there).arrays(features, gaps=True)
        gaps[there] |= np.isnan(x.reshape(len(x), -1)).any(1) if x.dtype.kind == "f" else False
    if gaps.all():
        raise DataError(f"dataset.missing=drop: {frame.where} has no row without a missing cell")
    if gaps.any():
        remarks.append(f"{gaps.sum()} of {len(gaps)} rows of {Path(frame.where).name} dropped, cells are missing")
    return frame.take(np.flatnonzero(~gaps)) if gaps.any() else frame


def fill(train: Frame, names: Sequence[str], x: Sequence[np.ndarray], remarks: list[str]) -> list[np.ndarray]:
    """Return the inputs of all parts with the means of the training rows where they are NaN; say it in `remarks`.

    Args:
        train: the training table.
        names: of the columns of numbers, or of the one column of lists.
        x: of each of PARTS that there is.
        remarks: what people are told.

    Raises `DataError` where there is no mean.
    """
    mean = means(x[0])
    if np.isnan(mean).any():
        at = int(np.isnan(mean.reshape(-1)).argmax())
        name = names[at if len(names) > 1 else 0]
        raise train.error(name, f": column {name!r} has no number in any training row to take the mean of")
    holes = [int(np.isnan(each).sum()) for each in x]
    if any(holes):
        counts = [f"{n} {part}" for n, part in zip(holes, PARTS, strict=False)]
        all_counts = " and ".join([", ".join(counts[:-1]), counts[-1]])
        remarks.append(f"{all_counts} cells filled with the means of the training rows")
    return [fill_missing(each, mean) for each in x]


def standardise(x: Sequence[np.ndarray], remarks: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Standardise all parts in place, say so in `remarks`, and return each feature's mean and deviation.

    x: of each of PARTS that there is.
    """
    mean, sd = moments(x[0])
    for each in x:
        each -= mean
        each /= sd
    remarks.append(f"standardised by mean and deviation of the {len(x[0])} training rows")
    return mean, sd


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
