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
from fedcohort.dataset.clients import read_client_column
from fedcohort.dataset.files import find_part_file
from fedcohort.dataset.image_dataset import ImageTables, ImageTableSpec
from fedcohort.dataset.labels import read_class_column
from fedcohort.dataset.messages import note_count_difference
from fedcohort.dataset.source import TableDataset, find_column
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError
from fedcohort.rng import new_generator
from fedcohort.types import Ids

TRAINING_SHARE, MIN_TRAINING_SAMPLES = 0.9, 3


@dataclass(frozen=True)
class TrainTestSplit:
    """The rows of the training and of the test part, and their clients.

    Attributes:
        train_rows: sorted positions of training rows among all rows, int64 [n_train].
        test_rows: sorted positions of test rows, int64 [n_test].
        train_owner: client of each training row, counted from 0 in the order of ids, int64 [n_train].
        test_owner: client of each test row, int64 [n_test]; people with test rows only are numbered after the clients.
            None if no client has test rows.
        people_note: number of people, and what was left out, for the start-up table.
    """

    train_rows: Ids
    test_rows: Ids
    train_owner: Ids
    test_owner: Ids | None
    people_note: str

    @property
    def raw_client_fields(self) -> dict[str, Any]:
        """Values of the fields of `Raw` that describe the clients, by name."""
        return {"train_owner": self.train_owner, "test_owner": self.test_owner, "pooled_test": self.test_owner is None}


@dataclass(frozen=True)
class LeafDataset(TableDataset):
    """A dataset with natural clients that LEAF's rules divide into a training and a test part.

    Attributes:
        client_columns: possible names of the column of people.
        hub_splits: parts of the dataset on the hub; a folder must have the first.
        test: test part: a tenth of each person's samples ("sample"), all samples of a tenth of the people ("user"), or
            the part of the files ("given").
        users: share of the samples that is used, in (0, 1], person by person in a random order.
        least: smallest number of samples of a person; people with fewer are left out.
    """

    client_columns: ClassVar[Sequence[str]]
    hub_splits: ClassVar[Sequence[str]] = ("train",)

    test: str
    users: float
    least: int

    def __post_init__(self) -> None:
        ranges.choice("test", self.test, "sample", "user", "given")
        ranges.number("users", self.users, "(0, 1]")
        ranges.integer("least", self.least, "[0, inf)")
        super().__post_init__()

    def split_train_test(
        self, owners: Ids, rng: np.random.Generator, n_file_train_rows: int, n_gap_samples: int | None = None
    ) -> TrainTestSplit:
        """Divide rows into a training and a test part by LEAF's rules.

        Args:
            owners: person of each row, int64 [N], counted from 0.
            rng: generator of all draws.
            n_file_train_rows: number of rows of the file's training part, which come first, for test=given.
            n_gap_samples: None if a person's samples have no order. Otherwise test=sample divides them in order: the
                first 90 % are training samples, and `n_gap_samples` samples after them are left out.

        Raises:
            DataError: no training or no test sample remains.
        """
        if not len(owners):
            raise DataError(f"dataset={self.name} has no samples: its files hold no rows, restore them")
        row_ids = np.arange(len(owners)) if self.users == 1 else draw_people_sample(owners, self.users, rng)
        sample_counts = np.bincount(owners[row_ids], minlength=owners.max() + 1)
        is_left_out_person = (sample_counts > 0) & (sample_counts < self.least)
        row_ids = row_ids[~is_left_out_person[owners[row_ids]]]
        if self.test == "given":
            is_train = row_ids < n_file_train_rows
        elif self.test == "user":
            people_ids = np.unique(owners[row_ids])
            is_train = np.isin(owners[row_ids], rng.permutation(people_ids)[: int(TRAINING_SHARE * len(people_ids))])
        else:
            # max(1, floor(.9 n)) samples of each person are training samples; `n_gap_samples` after them are left out.
            people = owners[row_ids]
            train_sizes = np.maximum(1, np.floor(TRAINING_SHARE * np.bincount(people) + 1e-9).astype(np.int64))[people]
            rank_of_sample = rank_within_group(people, rng.permutation(len(people)) if n_gap_samples is None else None)
            is_used_row = (rank_of_sample < train_sizes) | (rank_of_sample >= train_sizes + (n_gap_samples or 0))
            row_ids, is_train = row_ids[is_used_row], rank_of_sample[is_used_row] < train_sizes[is_used_row]
        train_count_of_person = np.bincount(owners[row_ids[is_train]], minlength=owners.max() + 1)
        is_small_client = (train_count_of_person > 0) & (train_count_of_person < MIN_TRAINING_SAMPLES)
        train_rows, test_rows = row_ids[is_train & ~is_small_client[owners[row_ids]]], row_ids[~is_train]
        train_people = np.unique(owners[train_rows])
        test_has_new_people = not np.isin(owners[test_rows], train_people).any()
        test_rows = test_rows[test_has_new_people | ~is_small_client[owners[test_rows]]]
        if not len(train_rows) or not len(test_rows):
            split_name = "test" if len(train_rows) else "training"
            options_text = f"test={self.test}, users={self.users:g} and least={self.least}: change these options"
            raise DataError(f"dataset={self.name}: no {split_name} samples are left with {options_text}")
        people_note = f"{len(np.unique(owners))} people, {len(train_people)} of them clients"
        people_note += "; the test samples are of other people: no metrics clients/acc_*" * test_has_new_people
        if n_left_out_people := int((is_left_out_person | is_small_client).sum()):
            people_note += f"; {n_left_out_people} with too few samples left out"
        person_of_client = np.concatenate([train_people, np.setdiff1d(owners[test_rows], train_people)])
        client_of_person = np.empty(owners.max() + 1, dtype=np.int64)
        client_of_person[person_of_client] = np.arange(len(person_of_client))
        test_owner = None if test_has_new_people else client_of_person[owners[test_rows]]
        return TrainTestSplit(train_rows, test_rows, client_of_person[owners[train_rows]], test_owner, people_note)

    def describe_size_differences(self, *size_comparisons: tuple[str, int, int]) -> list[str]:
        """Return notes on how numbers such as that of images differ from the original dataset's; [] with test=given.

        Args:
            size_comparisons: for each comparison a noun such as "images", the number in the data, and the number in the
                original.
        """
        reported_comparisons = () if self.test == "given" else size_comparisons
        return [
            size_note
            for size_comparison in reported_comparisons
            for size_note in note_count_difference(*size_comparison)
        ]

    def read_pooled_frames(self) -> list[Frame]:
        """Return the tables of all parts, whose rows are divided again; with test=given those of training and test.

        Raises `DataError` if a table is missing or can't be read.
        """
        if self.test == "given":
            return self.read_frames()
        if self.path is None:
            return self.read_frames(self.hub_splits)
        existing_split_names = [split_name for split_name in ("valid", "test") if find_part_file(self.path, split_name)]
        return self.read_frames(("train", *existing_split_names))

    def read_people(self, frames: Sequence[Frame]) -> Ids:
        """Return the person of each row of the tables `frames`, one table after the other, int64 [N].

        People are numbered in the sorted order of their ids. Raises `DataError` for an empty or invalid id.
        """
        return read_client_column(frames, [find_column(frame, *self.client_columns) for frame in frames])[0]


@dataclass(frozen=True)
class PersonImageDataset(ImageTables, LeafDataset):
    """A dataset of images with a natural client per person.

    Attributes:
        table_spec: columns, classes and format of the images, and the original numbers of images and people.
    """

    table_spec: ClassVar[ImageTableSpec]

    def __init_subclass__(cls) -> None:
        cls.name = cls.table_spec.name
        cls.column_names = (cls.table_spec.image_columns, cls.table_spec.label_columns, cls.client_columns)

    def load(self, seed: int) -> Raw:
        """Return images [N, channels, height, width], their classes [N] and natural clients.

        Images of rows that are left out aren't decoded.

        Args:
            seed: seed from which the training and the test part are drawn.

        Raises:
            DataError: a table is missing or damaged, has other columns, or no training or test sample remains.
        """
        frames = self.read_pooled_frames()
        labels = np.concatenate([self.table_spec.read_labels(frame) for frame in frames])
        person_of_row = self.read_people(frames)
        rng = new_generator(seed, "leaf")
        row_split = self.split_train_test(person_of_row, rng, frames[0].table.num_rows)
        x, test_x = (self.table_spec.read_images(frames, rows) for rows in (row_split.train_rows, row_split.test_rows))
        pool_counts = (len(person_of_row), len(np.unique(person_of_row)))
        size_comparisons = zip(("images", "people"), pool_counts, self.table_spec.original_pool_counts, strict=True)
        data_notes = [row_split.people_note, *self.describe_size_differences(*size_comparisons)]
        raw_data = self.table_spec.make_raw_data(
            (x, labels[row_split.train_rows]), (test_x, labels[row_split.test_rows]), self.pixels, *data_notes
        )
        if (attribute_column := getattr(self, "attribute", None)) is not None:
            attribute_of_row = np.concatenate(
                [read_class_column(frame, attribute_column, ("0", "1")) for frame in frames]
            )
            raw_data = replace(
                raw_data,
                train_attribute=attribute_of_row[row_split.train_rows],
                test_attribute=attribute_of_row[row_split.test_rows],
            )
        return replace(raw_data, revision=frames[0].revision, **row_split.raw_client_fields)


def draw_people_sample(owner_of_sample: Ids, row_share: float, rng: np.random.Generator) -> Ids:
    """Draw people until they have a share of the rows, and return the sorted positions of their rows, int64.

    Of the last person some rows are drawn, so that the number of rows is exact.

    Args:
        owner_of_sample: person of each row, int64 [N] from 0.
        row_share: share of the rows to return, in (0, 1].
        rng: generator that draws people and rows.
    """
    person_rank = np.argsort(rng.permutation(owner_of_sample.max() + 1))
    shuffled_rows = rng.permutation(len(owner_of_sample))
    row_order = shuffled_rows[np.argsort(person_rank[owner_of_sample[shuffled_rows]], kind="stable")]
    return np.sort(row_order[: int(row_share * len(owner_of_sample))])
