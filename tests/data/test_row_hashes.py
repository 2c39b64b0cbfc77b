"""Samples are found again by their bytes."""

import numpy as np

from fedcohort.data.row_hashes import hash_rows


def test_equal_rows_have_equal_hashes_and_different_rows_do_not() -> None:
    x = np.random.default_rng(0).normal(size=(50, 2, 3)).astype(np.float32)
    hashes = hash_rows(x)
    assert hashes.dtype == np.uint64
    assert len(np.unique(hashes)) == 50
    np.testing.assert_array_equal(hash_rows(x[::-1].copy()), hashes[::-1])
    np.testing.assert_array_equal(hash_rows(x.transpose(0, 2, 1).copy().transpose(0, 2, 1)), hashes, "any layout")
    x[7, 1, 2] = np.nextafter(x[7, 1, 2], np.float32(9))
    assert np.flatnonzero(hash_rows(x) != hashes).tolist() == [7]
    assert len(hash_rows(x[:0])) == 0
