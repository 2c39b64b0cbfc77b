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
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.data.group_ranks import rank_within_group
from fedcohort.dataset.base import Raw
from fedcohort.dataset.clients import read_clients
from fedcohort.dataset.files import find_part
from fedcohort.dataset.image_dataset import ImageLayout, ImageTables
from fedcohort.dataset.labels import read_classes
from fedcohort.dataset.messages import difference
from fedcohort.dataset.source import TableDataset, column_of
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.rng import new_generator
from fedcohort.types import Ids

TRAINING_SHARE, MIN_TRAINING_SAMPLES = 0.9, 3


@dataclass(frozen=True)
class Division:
    """The rows of the training and of the test part, and their clients.

    Attributes:
        train: sorted positions of training rows among all rows, int64.
        test: sorted positions of test rows, int64.
        owner: the client of each training row, counted from 0 in the order of ids, int64.
        test_owner: the client of each test row; people with test rows only are numbered after the clients. None where
            no client has test rows.
        note: number of people, and what was left out, for the start-up table.
    """

    train: Ids
    test: Ids
    owner: Ids
    test_owner: Ids | None
    note: str

    @property
    def clients(self) -> dict[str, Any]:
        """The fields of `Raw` that describe the clients."""
        return {"train_owner": self.owner, "test_owner": self.test_owner, "pooled_test": self.test_owner is None}


@dataclass(frozen=True)
class LeafDataset(TableDataset):
    """A dataset with natural clients that LEAF's rules divide into a training and a test part.

    Attributes:
        client: possible names of the column of people.
        hub_parts: parts that the hub has; a folder must have the first.
        test: "sample", "user" or "given".
        users: share of the samples.
        least: samples of the smallest person.
    """

    client: ClassVar[Sequence[str]]
    hub_parts: ClassVar[Sequence[str]] = ("train",)

    test: str
    users: float
    least: int

    def __post_init__(self) -> None:
        ranges.choice("test", self.test, "sample", "user", "given")
        ranges.number("users", self.users, "(0, 1]")
        ranges.integer("least", self.least, "[0, inf)")
        super().__post_init__()

    def divide(self, owner: Ids, rng: np.random.Generator, n_train_file: int, gap: int | None = None) -> Division:
        """Divide rows by LEAF's rules.

        Args:
            owner: the person of each row, int64 [N], counted from 0.
            rng: for all draws.
            n_train_file: rows of the file's training part, which come first, for test=given.
            gap: None if a person's samples have no order. Otherwise test=sample divides them in their order: the first
                .9 are training samples, and `gap` samples after them are left out.

        Raises:
            DataError: if no training or no test sample remains.
        """
        if not len(owner):
            raise DataError(f"dataset={self.name} has no samples")
        rows = np.arange(len(owner)) if self.users == 1 else subsample(owner, self.users, rng)
        counts = np.bincount(owner[rows], minlength=owner.max() + 1)
        left_out = (counts > 0) & (counts < self.least)
        rows = rows[~left_out[owner[rows]]]
        if self.test == "given":
            is_train = rows < n_train_file
        elif self.test == "user":
            present = np.unique(owner[rows])
            is_train = np.isin(owner[rows], rng.permutation(present)[: int(TRAINING_SHARE * len(present))])
        else:
            # Of each person max(1, floor(.9 n)) samples are training samples; `gap` samples after them are left out.
            people = owner[rows]
            quota = np.maximum(1, np.floor(TRAINING_SHARE * np.bincount(people) + 1e-9).astype(np.int64))[people]
            rank = rank_within_group(people, rng.permutation(len(people)) if gap is None else None)
            is_used = (rank < quota) | (rank >= quota + (gap or 0))
            rows, is_train = rows[is_used], rank[is_used] < quota[is_used]
        sizes = np.bincount(owner[rows[is_train]], minlength=owner.max() + 1)
        too_small = (sizes > 0) & (sizes < MIN_TRAINING_SAMPLES)
        train, test_rows = rows[is_train & ~too_small[owner[rows]]], rows[~is_train]
        clients = np.unique(owner[train])
        has_new_people = not np.isin(owner[test_rows], clients).any()
        test_rows = test_rows[has_new_people | ~too_small[owner[test_rows]]]
        if not len(train) or not len(test_rows):
            part, options = "test" if len(train) else "training", f"users={self.users:g} and least={self.least}"
            raise DataError(f"dataset={self.name}: no {part} samples are left with test={self.test}, {options}")
        clients_note = f"{len(np.unique(owner))} people, {len(clients)} of them clients"
        clients_note += "; the test samples are of other people: no metrics clients/acc_*" * has_new_people
        if n_left_out := int((left_out | too_small).sum()):
            clients_note += f"; {n_left_out} with too few samples left out"
        owners_in_order = np.concatenate([clients, np.setdiff1d(owner[test_rows], clients)])
        number_of_owner = np.empty(owner.max() + 1, dtype=np.int64)
        number_of_owner[owners_in_order] = np.arange(len(owners_in_order))
        test_owner = None if has_new_people else number_of_owner[owner[test_rows]]
        return Division(train, test_rows, number_of_owner[owner[train]], test_owner, clients_note)

    def compare_with_original(self, *counts: tuple[str, int, int]) -> list[str]:
        """Return notes on the differences between a pool and the original's; none if test=given skips a part of it.

        counts: what is counted, the number in the pool, and the original's number.
        """
        return [] if self.test == "given" else [text for count in counts for text in difference(*count)]

    def pool_frames(self) -> list[Frame]:
        """Return the tables that the rules divide; with test=given only those of training and test."""
        if self.test == "given":
            return self.frames()
        if self.path is None:
            return self.frames(self.hub_parts)
        present = [part_name for part_name in ("valid", "test") if find_part(self.path, part_name)]
        return self.frames(("train", *present))

    def read_people(self, frames: Sequence[Frame]) -> Ids:
        """Return the person of each row, one table after the other, numbered in the sorted order of ids; int64 [N]."""
        return read_clients(frames, [column_of(frame, *self.client) for frame in frames])[0]


@dataclass(frozen=True)
class PeopleImages(ImageTables, LeafDataset):
    """A dataset of images with a natural client per person.

    Attributes:
        layout: the images; `layout.pool` has the original's numbers of images and people.
        attribute: in some datasets an option, the tables' name of a column of numbers or booleans that becomes the
            attribute; None for none.
    """

    layout: ClassVar[ImageLayout]

    def __init_subclass__(cls) -> None:
        cls.name, cls.column_names = cls.layout.name, (cls.layout.image, cls.layout.label, cls.client)

    def load(self, seed: int) -> Raw:
        """Return images, classes and natural clients; the division is drawn. Raises `DataError`.

        Images of rows that are left out aren't decoded.
        """
        frames = self.pool_frames()
        labels = np.concatenate([self.layout.read_labels(frame) for frame in frames])
        people = self.read_people(frames)
        rng = new_generator(seed, "leaf")
        parts = self.divide(people, rng, frames[0].table.num_rows)
        x, test_x = (self.layout.read_images(frames, rows) for rows in (parts.train, parts.test))
        n_images, n_people = self.layout.pool
        counts = ("images", len(people), n_images), ("people", len(np.unique(people)), n_people)
        notes = [parts.note, *self.compare_with_original(*counts)]
        raw = self.layout.make_raw((x, labels[parts.train]), (test_x, labels[parts.test]), self.pixels, *notes)
        if (attribute := getattr(self, "attribute", None)) is not None:
            values = np.concatenate([read_classes(frame, attribute, ("0", "1")) for frame in frames])
            raw = replace(raw, train_attribute=values[parts.train], test_attribute=values[parts.test])
        return replace(raw, revision=frames[0].revision, **parts.clients)


def subsample(owner_of_sample: Ids, kept_share: float, rng: np.random.Generator) -> Ids:
    """Return sorted positions of a share of the rows: people in a random order, the last one in part."""
    rank = np.argsort(rng.permutation(owner_of_sample.max() + 1))
    shuffled = rng.permutation(len(owner_of_sample))
    order = shuffled[np.argsort(rank[owner_of_sample[shuffled]], kind="stable")]
    return np.sort(order[: int(kept_share * len(owner_of_sample))])
