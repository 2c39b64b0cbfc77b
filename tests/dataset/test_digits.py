import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fedcohort.dataset.digits import Digits, read_bundled_digits


def keys(x: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in x}


def test_digits_have_pixels_from_0_to_1_and_a_stratified_test_fifth() -> None:
    raw = Digits().load(0)
    assert raw.train_x.dtype == np.float32
    assert raw.train_x.shape[1:] == (1, 8, 8)
    assert (raw.train_x.min(), raw.train_x.max()) == (0, 1)
    assert len(raw.train_y) + len(raw.test_y) == 1797
    class_counts = np.bincount(load_digits().target)
    np.testing.assert_array_equal(np.bincount(raw.test_y), np.rint(class_counts * 0.2))
    assert raw.train_owner is None


def test_every_digit_is_in_exactly_one_of_train_and_test() -> None:
    raw, bundle = Digits().load(0), load_digits()
    images = (bundle.images / 16).astype(np.float32)[:, None]
    order = np.lexsort(images.reshape(1797, -1).T)
    all_images = np.concatenate([raw.train_x, raw.test_x])
    repeat = np.lexsort(all_images.reshape(1797, -1).T)
    np.testing.assert_array_equal(images[order], all_images[repeat])
    np.testing.assert_array_equal(bundle.target[order], np.concatenate([raw.train_y, raw.test_y])[repeat])


def test_the_seed_determines_the_split_of_digits() -> None:
    first, repeat, other_data = Digits().load(0), Digits().load(0), Digits().load(1)
    np.testing.assert_array_equal(first.test_x, repeat.test_x)
    assert keys(first.test_x) != keys(other_data.test_x)


def test_the_bundled_digits_equal_those_of_scikit_learn() -> None:
    images, classes = read_bundled_digits()
    sklearn_digits = load_digits()
    np.testing.assert_array_equal(images, sklearn_digits.images)
    np.testing.assert_array_equal(classes, sklearn_digits.target)
    assert classes.dtype == np.int64


def test_the_bundled_digits_are_read_only() -> None:
    Digits().load(0).train_x[:] = 0
    for array in read_bundled_digits():
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    assert Digits().load(0).train_x.any()


def test_loading_digits_does_not_import_scikit_learn() -> None:
    code = (
        "import sys; from fedcohort.dataset.digits import Digits; Digits().load(0); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
