"""UCI-HAR, 10,299 windows of the motion of a phone that 30 people wear at the waist (Anguita et al. 2013).

    x = total_acc x y z, body_acc x y z, body_gyro x y z;   9 signals of 128 samples, 2.56 s at 50 Hz, not normalised

    y = 0 WALKING, 1 WALKING_UPSTAIRS, 2 WALKING_DOWNSTAIRS, 3 SITTING, 4 STANDING, 5 LAYING

Accelerations are in g, total_acc with gravity and body_acc without it. Angular velocities (body_gyro) are in rad/s.

Client k is the k-th of the 21 people of the training part, in the order of their ids. The windows of the 9 people of
the test part belong to the server only, as in FedBalancer (Shin et al. 2022, Sec. 4.1). A person's windows overlap by
half. Validation samples are random windows and therefore similar to training samples; test samples are not.

The data are train.parquet and test.parquet in a folder, or data on the Hugging Face hub. Columns: the nine signals
(lists of 128 numbers, called total_acc_x and so on), `label` (0 to 5, or the names) and `subject`. Other columns are
left out.

Departures from the paper: its 561 features, computed from each window, are not read.
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
WINDOWS = (7_352, 2_947)  # of the training and the test part
ACTIVITIES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
SERVER_TEST = "only the server holds test rows: no metrics clients/acc_*"


@dataclass(frozen=True)
class UciHar(Dataset):
    """The dataset with its options.

    Attributes:
        path: a local folder, or None for the hub.
        hub: the name on the hub of a dataset with these columns, or None if there is a folder.
        columns: the tables' names of columns, by the names above; None if they are the same.
    """

    path: str | None
    hub: str | None
    columns: Columns | None

    def __post_init__(self) -> None:
        text("path", self.path, optional=True)
        text("hub", self.hub, optional=True)
        check_columns(self.columns, *((name,) for name in (*SIGNALS, "label", "subject")))

    def load(self, seed: int) -> Raw:
        """Return float32 [N, 9, 128], 6 classes, and a natural client per training subject; nothing is drawn.

        Raises `DataError` that names file, column and row.
        """
        train, test = self._frames()
        subjects = read_subjects(train)
        check_no_shared_subjects(train, subjects, test, read_subjects(test))
        check_counted_from_zero(train)
        labels = [labels_of(frame, column_of(frame, "label"), ACTIVITIES) for frame in (train, test)]
        counts = zip(("training windows", "test windows"), labels, WINDOWS, strict=True)
        notes = [f"{len(SIGNALS)} x {SAMPLES}: {', '.join(SIGNALS)}, not normalised"]
        notes += [note for what, y, n in counts for note in difference(what, len(y), n)]
        _, owner = np.unique(subjects, return_inverse=True)
        return Raw(
            "uci_har",
            read_windows(train),
            labels[0],
            read_windows(test),
            labels[1],
            n_classes=len(ACTIVITIES),
            train_owner=owner.astype(np.int64),
            inputs="; ".join([*notes, SERVER_TEST]),
            class_names=ACTIVITIES,
            pooled_test=True,
            revision=train.revision,
            single_use=True,
        )

    def _frames(self) -> tuple[Frame, Frame]:
        if self.path is None and self.hub is None:
            raise DataError(
                "dataset=uci_har needs dataset.path, a folder with train.parquet and test.parquet, or dataset.hub, the "
                "name of data with the same columns on the Hugging Face hub. docs/data.md shows how to convert UCI's "
                "archive, https://archive.ics.uci.edu/dataset/240"
            )
        train, test = frames_of("uci_har", self.path, self.hub, self.columns)
        return train, test


def check_counted_from_zero(frame: Frame) -> None:
    """Raise `DataError` if labels are 1 to 6, the numbers of UCI's archive, instead of 0 to 5."""
    name = column_of(frame, "label")
    column = frame.require_full(name)
    if (
        cells.is_number(column.type)
        and (values := cells.numbers(column)).min() == 1
        and values.max() == len(ACTIVITIES)
    ):
        what = (
            f": column {name!r} counts from 1 to {len(ACTIVITIES)}, as UCI's files do: subtract 1, or write the names"
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


def check_no_shared_subjects(train: Frame, train_subjects: Ids, test: Frame, test_subjects: Ids) -> None:
    """Raise `DataError` for a person in both parts, whose overlapping windows would be in training and test."""
    is_shared = np.isin(test_subjects, train_subjects)
    if is_shared.any():
        row = int(is_shared.argmax())
        what = f"is of subject {test_subjects[row]}, which {train.where} has, too: the parts must have different people"
        raise test.blame(column_of(test, "subject"), row, what)


def read_windows(frame: Frame) -> Float32[np.ndarray, "n 9 128"]:
    """Return the signals of all windows, in the order of `SIGNALS`."""
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
