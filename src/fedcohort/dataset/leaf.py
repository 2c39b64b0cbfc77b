"""Apply LEAF's rules on which people take part and which samples are the test part (Caldas et al. 2018).

Options, with LEAF's own option in brackets:
- users (`--sf`, niid): people in a random order with all their samples, until this share of the samples is reached. The
  last person contributes a random part.
- least (`-k`): people with fewer samples are left out.
- test=sample (`-t sample`): max(1, floor(.9 n)) random samples of each person are training samples, the others test.
- test=user (`-t user`): floor(.9 K) random people are in training, and the samples of the other people are the test.
- test=given: the parts are those of the files. Test samples of people without training samples belong to the server.

Afterwards people with fewer than three training samples are left out, since a client needs three.

Departures from LEAF: the random draws differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort import ranges
from fedcohort.data.places import rank_within_group, shuffled_positions
from fedcohort.dataset import cells
from fedcohort.dataset.naming import difference
from fedcohort.dataset.source import column_of
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.types import Ids

SHARE, LEAST = 0.9, 3
TESTS = ("sample", "user", "given")


@dataclass(frozen=True)
class Division:
    """Rows of a training and a test part, and their clients.

    Attributes:
        train: sorted positions of training rows among all rows, int64.
        test: sorted positions of test rows, int64.
        owner: the client of each training row, counted from 0 in the order of ids, int64.
        test_owner: the client of each test row; people with test rows only are numbered after the clients. None where
            no client has test rows.
        remark: what was left out, for people; may be empty.
    """

    train: Ids
    test: Ids
    owner: Ids
    test_owner: Ids | None
    remark: str


@dataclass(frozen=True)
class Rules:
    """The options of the module docstring.

    Attributes:
        test: one of TESTS.
        users: share of the samples.
        least: samples of the smallest person.
    """

    test: str
    users: float
    least: int

    def __post_init__(self) -> None:
        ranges.choice("test", self.test, *TESTS)
        ranges.number("users", self.users, "(0, 1]")
        ranges.integer("least", self.least, "[0, inf)")


def people(frames: Sequence[Frame], names: Sequence[str]) -> Ids:
    """Return the person of each row, one table after the other, numbered in the sorted order of ids; int64 [N].

    A column is read row group by row group, and each id is in memory once.
    """
    import pyarrow as pa

    number_of_id: dict[Any, int] = {}
    owner, start = np.empty(sum(frame.table.num_rows for frame in frames), dtype=np.int64), 0
    kinds: set[bool] = set()
    for frame in frames:
        name, first = column_of(frame, *names), start
        for chunk in frame.chunks(name):
            if not (cells.is_text(chunk.type) or cells.is_number(chunk.type)):
                raise frame.error(name, f": column {name!r} must hold texts or numbers, it holds {chunk.type}")
            if (gap := cells.empty(pa.chunked_array([chunk]))).any():
                raise frame.blame(name, start - first + int(gap.argmax()), "is empty")
            kinds.add(cells.is_text(chunk.type))
            encoded = chunk.dictionary_encode()
            ids = encoded.dictionary.to_pylist()
            numbers = np.array([number_of_id.setdefault(key, len(number_of_id)) for key in ids], np.int64)
            owner[start : start + len(chunk)] = numbers[encoded.indices.to_numpy()]
            start += len(chunk)
    if len(kinds) > 1:
        name = column_of(frames[-1], *names)
        raise frames[-1].error(name, f": column {name!r} mixes texts and numbers with that of {frames[0].where}")
    place = np.empty(len(number_of_id), dtype=np.int64)
    place[[number_of_id[key] for key in sorted(number_of_id)]] = np.arange(len(number_of_id))
    numbered: Ids = place[owner]
    return numbered


def divide(
    name: str, owner: Ids, rules: Rules, rng: np.random.Generator, n_train_file: int, gap: int | None = None
) -> Division:
    """Divide rows by LEAF's rules.

    Args:
        name: name of the dataset, for messages.
        owner: the person of each row, int64 [N], counted from 0.
        rules: the options.
        rng: for all draws.
        n_train_file: rows of the file's training part, which come first, for test=given.
        gap: None if a person's samples have no order. Otherwise test=sample divides them in their order: the first
            .9 are training samples, and `gap` samples after them are left out.

    Raises:
        DataError: if no training or no test sample remains.
    """
    if not len(owner):
        raise DataError(f"dataset={name} has no samples")
    rows = np.arange(len(owner)) if rules.users == 1 else subsample(owner, rules.users, rng)
    counts = np.bincount(owner[rows], minlength=owner.max() + 1)
    small = (counts > 0) & (counts < rules.least)
    rows = rows[~small[owner[rows]]]
    if rules.test == "given":
        is_train = rows < n_train_file
    elif rules.test == "user":
        present = np.flatnonzero(np.bincount(owner[rows], minlength=1))
        is_train = np.isin(owner[rows], rng.permutation(present)[: int(SHARE * len(present))])
    else:
        position, quota = rank_within_group(owner[rows]), quota_of(owner[rows])
        is_train = draw_training(owner[rows], rng) if gap is None else position < quota
        in_gap = np.zeros(len(rows), bool) if not gap else position < quota + gap
        rows, is_train = rows[is_train | ~in_gap], is_train[is_train | ~in_gap]
    sizes = np.bincount(owner[rows[is_train]], minlength=owner.max() + 1)
    poor = (sizes > 0) & (sizes < LEAST)
    train, tested = rows[is_train], rows[~is_train]
    train = train[~poor[owner[train]]]
    clients = np.unique(owner[train])
    strangers = not np.isin(owner[tested], clients).any()
    if not strangers:
        tested = tested[~poor[owner[tested]]]
    if not len(train) or not len(tested):
        raise DataError(
            f"dataset={name}: no {'test' if len(train) else 'training'} samples are left with test={rules.test}, "
            f"users={rules.users:g} and least={rules.least}"
        )
    remark = f"{len(np.unique(owner))} people, {len(clients)} of them clients"
    remark += "; the test samples are of other people: no metrics clients/acc_*" * strangers
    if n_left_out := int((small | poor).sum()):
        remark += f"; {n_left_out} with too few samples left out"
    numbered = np.concatenate([clients, np.setdiff1d(owner[tested], clients)])
    place = np.empty(owner.max() + 1, dtype=np.int64)
    place[numbered] = np.arange(len(numbered))
    return Division(train, tested, place[owner[train]], None if strangers else place[owner[tested]], remark)


def compare(rules: Rules, samples: tuple[str, int, int], people: tuple[str, int, int]) -> list[str]:
    """Return notes on the differences between a pool and the original's, where all parts were read.

    Args:
        rules: the options; with test=given a validation part isn't read.
        samples: what samples are called, their number and the original's number.
        people: the same of people.
    """
    return [] if rules.test == "given" else [*difference(*samples), *difference(*people)]


def subsample(owner: Ids, share: float, rng: np.random.Generator) -> Ids:
    """Return sorted positions of a share of the rows: people in a random order, the last one in part."""
    n_rows = int(share * len(owner))
    rank = np.empty(owner.max() + 1, dtype=np.int64)
    rank[rng.permutation(len(rank))] = np.arange(len(rank))
    shuffled = rng.permutation(len(owner))
    order = shuffled[np.argsort(rank[owner[shuffled]], kind="stable")]
    return np.sort(order[:n_rows])


def draw_training(owner: Ids, rng: np.random.Generator) -> np.ndarray:
    """Return whether each row is a training row, bool [N]: max(1, floor(.9 n)) random rows of each owner."""
    return rank_within_group(owner, shuffled_positions(len(owner), rng)) < quota_of(owner)


def quota_of(owner: Ids) -> Ids:
    """Return the number of training rows of each row's owner, int64 [N]."""
    quota: Ids = np.maximum(1, np.floor(SHARE * np.bincount(owner) + 1e-9).astype(np.int64))[owner]
    return quota
