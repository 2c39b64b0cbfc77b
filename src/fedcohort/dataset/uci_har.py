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

from fedcohort.dataset.base import Raw
from fedcohort.dataset.clients import read_client_column
from fedcohort.dataset.files import release_unused_memory
from fedcohort.dataset.labels import read_class_column
from fedcohort.dataset.messages import note_count_difference
from fedcohort.dataset.source import TableDataset, find_column
from fedcohort.dataset.table import Frame

SIGNALS = tuple(f"{signal}_{sensor_axis}" for signal in ("total_acc", "body_acc", "body_gyro") for sensor_axis in "xyz")
WINDOW_LENGTH = 128
WINDOW_COUNTS = (7_352, 2_947)  # of the training and the test part
ACTIVITIES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
SERVER_TEST_NOTE = "only the server holds test rows: no metrics clients/acc_*"


@dataclass(frozen=True)
class UciHar(TableDataset):
    """UCI-HAR, windows of the motion of phones, with a natural client per training subject."""

    name = "uci_har"
    column_names = tuple((column,) for column in (*SIGNALS, "label", "subject"))

    def load(self, seed: int) -> Raw:
        """Return windows as float32 [N, 9, 128] with 6 classes, and a natural client per training subject.

        Args:
            seed: has no effect, as nothing is drawn.

        Raises:
            DataError: a table is missing or invalid, or both parts have samples of one subject.
        """
        frames = train_frame, test_frame = self.read_frames()
        subject_of_row, subject_ids = read_client_column(frames, [find_column(frame, "subject") for frame in frames])
        train_owner, test_owner = np.split(subject_of_row, [train_frame.table.num_rows])
        allowed_text = f"which {train_frame.origin} has, too: the parts must have different people"
        is_train_subject, subject_column = np.isin(test_owner, train_owner), find_column(test_frame, "subject")
        test_frame.check_cells(
            subject_column,
            is_train_subject,
            lambda row: f"is of subject {subject_ids[test_owner[row]]}, {allowed_text}",
        )
        labels = [read_class_column(frame, find_column(frame, "label"), ACTIVITIES) for frame in frames]
        data_notes = [f"{len(SIGNALS)} x {WINDOW_LENGTH}: {', '.join(SIGNALS)}, not normalised"]
        for split_name, part_labels, n_windows in zip(("training", "test"), labels, WINDOW_COUNTS, strict=True):
            data_notes += note_count_difference(f"{split_name} windows", len(part_labels), n_windows)
        return Raw(
            *(self.name, read_windows(train_frame), labels[0], read_windows(test_frame), labels[1], len(ACTIVITIES)),
            train_owner=np.unique(train_owner, return_inverse=True)[1].astype(np.int64),
            inputs="; ".join([*data_notes, SERVER_TEST_NOTE]),
            class_names=ACTIVITIES,
            pooled_test=True,
            revision=train_frame.revision,
            single_use=True,
        )


def read_windows(frame: Frame) -> Float32[np.ndarray, "n 9 128"]:
    """Return the windows in the rows of the table `frame`, float32 [N, 9, 128] in the order of `SIGNALS`.

    Raises `DataError` if a column is missing or holds other values.
    """
    x = np.empty((frame.table.num_rows, len(SIGNALS), WINDOW_LENGTH), dtype=np.float32)
    for channel, signal in enumerate(SIGNALS):
        signal_windows = frame.read_arrays(column := find_column(frame, signal))
        if signal_windows.shape[1:] != (WINDOW_LENGTH,):
            raise frame.column_error(
                column,
                f": column {column!r} must hold lists of {WINDOW_LENGTH} numbers, but holds {signal_windows.shape[1:]}",
            )
        x[:, channel] = signal_windows
    release_unused_memory()
    return x
