"""Two data sets have one checksum where they are one."""

from dataclasses import replace

import numpy as np
import pytest

from fedcohort.dataset import checksum
from fedcohort.dataset.base import Raw
from fedcohort.dataset.checksum import compute_checksum


def raw() -> Raw:
    x = np.arange(60, dtype=np.float32).reshape(20, 3)
    y = np.arange(20) % 2
    return Raw("toy", x, y, x[:4].copy(), y[:4].copy(), 2)


def test_equal_data_have_equal_checksums_and_any_change_alters_them() -> None:
    before, ids = compute_checksum(raw()), np.zeros(20, np.int64)
    assert before == compute_checksum(raw())
    assert len(before) == 16
    changed = raw()
    changed.train_x[19, 2] += 1e-5
    changed_data = [
        changed,
        replace(raw(), test_x=raw().test_x + 1),
        replace(raw(), train_y=1 - raw().train_y),
        replace(raw(), test_y=1 - raw().test_y),
        replace(raw(), train_owner=ids),
        replace(raw(), train_attribute=ids),
        replace(raw(), train_x=raw().train_x.reshape(20, 1, 3)),
        replace(raw(), train_x=raw().train_x.astype(np.float64)),
    ]
    assert len({before, *map(compute_checksum, changed_data)}) == 1 + len(changed_data)


def test_the_dataset_name_does_not_affect_the_checksum() -> None:
    assert compute_checksum(replace(raw(), name="other", inputs="words")) == compute_checksum(raw())


def test_the_checksum_of_large_inputs_reads_every_kth_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """240 bytes, of which 60 may be read: every fourth row, 0, 4, 8, 12 and 16."""
    monkeypatch.setattr(checksum, "MAX_HASHED_BYTES", 60)
    monkeypatch.setattr(checksum, "ROWS_PER_HASH_STEP", 2)
    hashed_data, unseen = raw(), raw()
    hashed_data.train_x[16] = 0
    unseen.train_x[17] = 0
    assert compute_checksum(hashed_data) != compute_checksum(raw()) == compute_checksum(unseen)
