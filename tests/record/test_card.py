"""Arrays of `info.npz` are of types that users can add up."""

from pathlib import Path

import numpy as np

from fedcohort.record.card import ARRAYS, _narrow
from run_harness import go


def test_counts_do_not_overflow(tmp_path: Path) -> None:
    """Whole numbers are int32 at least: of uint8 even the sum of two clients' counts would overflow."""
    ran = go(tmp_path, "rounds=1", "callback=default", "callback.figures=null", "callback.progress=null")
    with np.load(ran.folder / ARRAYS) as arrays:
        sizes = {name: arrays[name].itemsize for name in arrays.files if arrays[name].dtype.kind in "iu"}
        total = arrays["class_counts"][:, :1] * 1000
    assert set(sizes) >= {"n_train", "class_counts"}
    assert min(sizes.values()) >= 4
    assert total.sum() == 1000 * ran.info.class_counts[:, 0].sum()


def test_larger_counts_keep_their_type() -> None:
    assert _narrow(np.array([2**40])).dtype == np.int64
    assert _narrow(np.array([2**31 - 1])).dtype == np.int32
