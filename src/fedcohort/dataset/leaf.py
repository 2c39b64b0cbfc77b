"""LEAF's rules for data that people made: who is kept, and what of their samples is the test (Caldas et al. 2018).

    users   people in a random order, all of their samples each, until the share of the samples is reached; of the last
            one so many as are left, at random (LEAF's `--sf`, niid)
    least   people with fewer samples are left out (`-k`)
    sample  of each person max(1, floor(.9 n)) samples at random train, the rest test (`-t sample`)
    user    floor(.9 K) people at random train, the others are strangers whose samples are the test (`-t user`)
    given   the parts are those of the files; test samples of people without training samples are the server's alone

Then people with fewer than three training samples are left out, as a client needs so many here.

Departures from LEAF: the draws are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort import ranges
from fedcohort.data.places import rank, shuffled
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
    """Rows of a training and a test part, and whose they are.

    Attributes:
        train, test: positions among all rows, sorted, int64.
        owner, test_owner: the client of each, counted from 0 in the order of their ids, people of the test part alone
            after them; test_owner None where the test part is of strangers.
        remark: what was left out, for people; may be empty.
    """

    train: Ids
    test: Ids
    owner: Ids
    test_owner: Ids | None
    remark: str


@dataclass(frozen=True)
class Rules:
    """The options, see above: test one of TESTS, users a share of the samples, least a number of samples."""

    test: str
    users: float
    least: int

    def __post_init__(self) -> None:
        ranges.choice("test", self.test, *TESTS)
        ranges.number("users", self.users, "(0, 1]")
        ranges.integer("least", self.least, "[0, inf)")


def people(frames: Sequence[Frame], names: Sequence[str]) -> Ids:
    """Whose each row of the tables is, one table after the other: numbers in the sorted order of the ids, int64 [N].

    A file's column is read row group by row group, and each id is held once.
    """
    import pyarrow as pa

    seen: dict[Any, int] = {}
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
            known = chunk.dictionary_encode()
            numbers = np.array([seen.setdefault(who, len(seen)) for who in known.dictionary.to_pylist()], np.int64)
            owner[start : start + len(chunk)] = numbers[known.indices.to_numpy()]
            start += len(chunk)
    if len(kinds) > 1:
        name = column_of(frames[-1], *names)
        raise frames[-1].error(name, f": column {name!r} mixes texts and numbers with that of {frames[0].where}")
    place = np.empty(len(seen), dtype=np.int64)
    place[[seen[who] for who in sorted(seen)]] = np.arange(len(seen))
    numbered: Ids = place[owner]
    return numbered


def divide(
    name: str, owner: Ids, rules: Rules, rng: np.random.Generator, given: int, gap: int | None = None
) -> Division:
    """Divide rows by LEAF's rules.

    Args:
        name: of the dataset, for messages.
        owner: whose each row is, int64 [N], counted from 0.
        rules: by which.
        rng: for all draws.
        given: how many of the first rows the file's training part has, for test=given.
        gap: None where a person's samples have no order; else those of test=sample are divided as they stand, the first
            .9 train, and so many after them are left out.

    Raises `DataError` where nothing is left.
    """
    if not len(owner):
        raise DataError(f"dataset={name} has no samples")
    rows = np.arange(len(owner)) if rules.users == 1 else subsample(owner, rules.users, rng)
    counts = np.bincount(owner[rows], minlength=owner.max() + 1)
    small = (counts > 0) & (counts < rules.least)
    rows = rows[~small[owner[rows]]]
    if rules.test == "given":
        is_train = rows < given
    elif rules.test == "user":
        there = np.flatnonzero(np.bincount(owner[rows], minlength=1))
        is_train = np.isin(owner[rows], rng.permutation(there)[: int(SHARE * len(there))])
    else:
        is_train = draw_training(owner[rows], rng) if gap is None else rank(owner[rows]) < quota_of(owner[rows])
        late = np.zeros(len(rows), bool) if not gap else rank(owner[rows]) < quota_of(owner[rows]) + gap
        rows, is_train = rows[is_train | ~late], is_train[is_train | ~late]
    sizes = np.bincount(owner[rows[is_train]], minlength=owner.max() + 1)
    poor = (sizes > 0) & (sizes < LEAST)
    train, tested = rows[is_train], rows[~is_train]
    train = train[~poor[owner[train]]]
    clients = np.unique(owner[train])
    strangers = not np.isin(owner[tested], clients).any()
    if not strangers:
        tested = tested[~poor[owner[tested]]]
    if not len(train) or not len(tested):
        part = "training" if not len(train) else "test"
        raise DataError(
            f"dataset={name}: no {part} samples are left with test={rules.test}, users={rules.users:g} and "
            f"least={rules.least}"
        )
    remark = f"{len(np.unique(owner))} people, {len(clients)} of them clients"
    if strangers:
        remark += "; the test is of others: no clients/acc_*"
    if left := int((small | poor).sum()):
        remark += f"; {left} left out, who have too few samples"
    numbered = np.concatenate([clients, np.setdiff1d(owner[tested], clients)])
    place = np.empty(owner.max() + 1, dtype=np.int64)
    place[numbered] = np.arange(len(numbered))
    return Division(train, tested, place[owner[train]], None if strangers else place[owner[tested]], remark)


def compare(rules: Rules, samples: tuple[str, int, int], people: tuple[str, int, int]) -> list[str]:
    """Say what a pool has more or less of than the original's, where all of it was read.

    Args:
        rules: those of `divide`; with test=given a validation part isn't read.
        samples: what they are called, how many there are and how many the original has.
        people: the same of them.
    """
    return [] if rules.test == "given" else [*difference(*samples), *difference(*people)]


def subsample(owner: Ids, share: float, rng: np.random.Generator) -> Ids:
    """The sorted positions of a share of the rows: people in a random order, the last one in part."""
    wanted = int(share * len(owner))
    rank = np.empty(owner.max() + 1, dtype=np.int64)
    rank[rng.permutation(len(rank))] = np.arange(len(rank))
    shuffled = rng.permutation(len(owner))
    order = shuffled[np.argsort(rank[owner[shuffled]], kind="stable")]
    return np.sort(order[:wanted])


def draw_training(owner: Ids, rng: np.random.Generator) -> np.ndarray:
    """Whether each row trains, bool [N]: max(1, floor(.9 n)) of each owner's, at random."""
    return rank(owner, shuffled(len(owner), rng)) < quota_of(owner)


def quota_of(owner: Ids) -> Ids:
    """How many of its owner's rows train, by row, int64 [N]."""
    quota: Ids = np.maximum(1, np.floor(SHARE * np.bincount(owner) + 1e-9).astype(np.int64))[owner]
    return quota
