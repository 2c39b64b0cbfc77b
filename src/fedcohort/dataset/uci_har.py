"""UCI-HAR, 10,299 windows of a phone's motion at the waists of 30 people in 6 activities (Anguita et al. 2013).

    x = total_acc x y z, body_acc x y z, body_gyro x y z:   9 signals of 128 samples, 2.56 s at 50 Hz, not normalised;
    acceleration in g, total_acc with gravity and body_acc without, angular velocity in rad/s
    y = 0 WALKING, 1 WALKING_UPSTAIRS, 2 WALKING_DOWNSTAIRS, 3 SITTING, 4 STANDING, 5 LAYING
    client k = the k-th of the 21 people of the training part, in the order of their ids

The 9 people of the test part are nobody's clients: their windows are the server's alone, as in FedBalancer (Shin et al.
2022, Sec. 4.1). One person's windows overlap by half, so that validation samples, which are drawn by windows, are no
strangers to training samples; test samples are.

From a folder with train.parquet and test.parquet, or from the Hugging Face hub. Columns: the nine signals (lists of 128
numbers, called total_acc_x and so on), `label` (0 to 5, or the names) and `subject`; others are left out.

Departures from the paper: it has 561 features computed of each window, which are not read.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from fedcohort.dataset import cells
from fedcohort.dataset.base import Dataset, Raw
from fedcohort.dataset.files import give_back
from fedcohort.dataset.naming import difference
from fedcohort.dataset.pictures import labels_of
from fedcohort.dataset.source import Columns, check_columns, column_of, frames_of
from fedcohort.dataset.table import Frame, text
from fedcohort.errors import DataError
from fedcohort.types import Ids

SIGNALS = tuple(f"{signal}_{axis}" for signal in ("total_acc", "body_acc", "body_gyro") for axis in "xyz")
SAMPLES = 128
WINDOWS = (7_352, 2_947)  # of the training and of the test part
ACTIVITIES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
STRANGERS = "the server alone holds the test rows: no clients/acc_*"


@dataclass(frozen=True)
class UciHar(Dataset):
    """The data set, with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name there of a data set with these columns, or None where there is a folder.
        columns: what the tables call columns otherwise than here, by the names above, or None.
    """

    path: str | None
    hub: str | None
    columns: Columns | None

    def __post_init__(self) -> None:
        text("path", self.path, optional=True)
        text("hub", self.hub, optional=True)
        check_columns(self.columns, *((name,) for name in (*SIGNALS, "label", "subject")))

    def load(self, seed: int) -> Raw:
        """float32 [N, 9, 128], 6 classes, a natural client per training subject; nothing is drawn.

        Raises `DataError` naming file, column and row.
        """
        train, test = self._frames()
        subjects, strangers = read_subjects(train), read_subjects(test)
        check_apart(train, subjects, test, strangers)
        check_counted_from_zero(train)
        labels = [labels_of(frame, column_of(frame, "label"), ACTIVITIES) for frame in (train, test)]
        counts = zip(("training windows", "test windows"), labels, WINDOWS, strict=True)
        said = [f"{len(SIGNALS)} x {SAMPLES}: {', '.join(SIGNALS)}, not normalised"]
        said += [line for what, y, n in counts for line in difference(what, len(y), n)]
        _, owner = np.unique(subjects, return_inverse=True)
        return Raw(
            "uci_har",
            read_windows(train),
            labels[0],
            read_windows(test),
            labels[1],
            n_classes=len(ACTIVITIES),
            train_owner=owner.astype(np.int64),
            inputs="; ".join([*said, STRANGERS]),
            class_names=ACTIVITIES,
            pooled_test=True,
            revision=train.revision,
            single_use=True,
        )

    def _frames(self) -> tuple[Frame, Frame]:
        if self.path is None and self.hub is None:
            raise DataError(
                "dataset=uci_har needs dataset.path, a folder with train.parquet and test.parquet (docs/data.md shows "
                "how to make it of UCI's archive, https://archive.ics.uci.edu/dataset/240), or dataset.hub, the name "
                "of data with the same columns on the Hugging Face hub"
            )
        train, test = frames_of("uci_har", self.path, self.hub, self.columns)
        return train, test


def check_counted_from_zero(frame: Frame) -> None:
    """Check that labels are not 1 to 6, as the archive has them."""
    name = column_of(frame, "label")
    column = frame.require_full(name)
    if (
        cells.is_number(column.type)
        and (values := cells.numbers(column)).min() == 1
        and values.max() == len(ACTIVITIES)
    ):
        what = (
            f": column {name!r} counts from 1 to {len(ACTIVITIES)}, as UCI's files do: take 1 off, or write the names"
        )
        raise frame.error(name, what)


def read_subjects(frame: Frame) -> Ids:
    """Return the id of each row's person, int64 [n]."""
    name = column_of(frame, "subject")
    column = frame.require_full(name)
    ids = column.to_numpy()
    if ids.dtype.kind not in "iu":
        raise frame.error(name, f": column {name!r} must hold whole numbers, it holds {column.type}")
    return np.asarray(ids, dtype=np.int64)


def check_apart(train: Frame, subjects: Ids, test: Frame, strangers: Ids) -> None:
    """Check that nobody is in both parts: overlapping windows of one person would be in training and in test."""
    known = np.isin(strangers, subjects)
    if known.any():
        row = int(known.argmax())
        what = f"is of subject {strangers[row]}, who has rows in {train.where}, too: the parts are of different people"
        raise test.blame(column_of(test, "subject"), row, what)


def read_windows(frame: Frame) -> Float32[np.ndarray, "n 9 128"]:
    """Return the signals of all windows, in the order of SIGNALS."""
    x = np.empty((frame.table.num_rows, len(SIGNALS), SAMPLES), dtype=np.float32)
    for channel, signal in enumerate(SIGNALS):
        name = column_of(frame, signal)
        values = frame.arrays(name)
        if values.shape[1:] != (SAMPLES,):
            what = f": column {name!r} must hold lists of {SAMPLES} numbers, it holds {values.shape[1:]}"
            raise frame.error(name, what)
        x[:, channel] = values
    give_back()
    return x
