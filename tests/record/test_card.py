"""Arrays of `info.npz` are of types that users can add up."""

from pathlib import Path

import numpy as np

from fedcohort.record.card import _narrow
from run_harness import go


def test_counts_do_not_overflow(tmp_path: Path) -> None:
    """Whole numbers are int32 at least: of uint8 even the sum of two clients' counts would overflow."""
    with np.load(go(tmp_path, "rounds=1").folder / "info.npz") as arrays:
        kinds = {name: arrays[name].dtype for name in arrays.files if arrays[name].dtype.kind in "iu"}
    assert set(kinds) >= {"n_train", "class_counts"}
    assert all(np.dtype(kind).itemsize >= 4 for kind in kinds.values())


def test_larger_counts_keep_their_type() -> None:
    assert _narrow(np.array([2**40])).dtype == np.int64
    assert _narrow(np.array([2**31 - 1])).dtype == np.int32
