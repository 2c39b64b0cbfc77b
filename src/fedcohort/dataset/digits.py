"""Handwritten digits, 1,797 images of 8 x 8 (Alpaydin & Kaynak 1998, UCI), bundled with scikit-learn: no download.

    x = pixel / 16 in [0, 1];   test = a random fifth of each class, drawn with the data seed

Departures from the paper: scikit-learn bundles the test part of the original (13 other writers) only, so the split is
random here and is not the original's split by writer.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution

import numpy as np

from fedcohort.dataset.base import Dataset, Raw
from fedcohort.rng import new_generator
from fedcohort.types import Ids

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Digits(Dataset):
    """Handwritten digits, 1,797 grey images of 8 x 8 pixels that scikit-learn contains."""

    def load(self, seed: int) -> Raw:
        """Return float32 [N, 1, 8, 8] in [0, 1] with 10 classes and without natural clients.

        Args:
            seed: seed from which the test part is drawn, a fifth of each class.
        """
        images, y = read_bundled_digits()
        x = (images / 16).astype(np.float32)[:, None]
        train_rows, test_rows = draw_train_test_rows(y, new_generator(seed, "digits"))
        return Raw("digits", x[train_rows], y[train_rows], x[test_rows], y[test_rows], n_classes=10)


@cache
def read_bundled_digits() -> tuple[np.ndarray, Ids]:
    """Return the images that scikit-learn contains, float64 [1797, 8, 8] in [0, 16], and their classes, int64 [1797].

    Both arrays are read-only. The file is read once per process without importing scikit-learn, whose import takes as
    long as ten rounds of training.
    """
    digits_file = distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz")
    digit_table = np.loadtxt(str(digits_file), delimiter=",")
    images, classes = digit_table[:, :-1].reshape(-1, 8, 8), digit_table[:, -1].astype(np.int64)
    for shared_array in (images, classes):
        shared_array.flags.writeable = False
    return images, classes


def draw_train_test_rows(labels: Ids, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Draw a fifth of each class as the test part.

    Args:
        labels: class of each sample, int64 [N].
        rng: generator that draws the test samples.

    Returns:
        Sorted positions of the training samples, and of the test samples, each int64.
    """
    is_test_row = np.zeros(len(labels), dtype=bool)
    for c in np.unique(labels):
        class_rows = rng.permutation(np.flatnonzero(labels == c))
        is_test_row[class_rows[: round(TEST_SHARE * len(class_rows))]] = True
    return np.flatnonzero(~is_test_row), np.flatnonzero(is_test_row)
