"""What is a label, and what is refused as one."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from fedcohort.errors import DataError
from folder_tables import LABELS, make_folder_dataset, set_value, write_both_parts, write_part

LETTERS = ["cat", "dog", "eel", "cat"] * 10


@pytest.mark.parametrize(
    ("labels", "expected_text"),
    [
        (set_value(LABELS, 3, 10**6), r"row 3 has label 1000000; .* at least 0 and at most 99999"),
        (set_value(LABELS, 3, 10**12), r"row 3 has label 1000000000000; "),
        (set_value(LABELS, 3, 2**62), r"row 3 has label 4611686018427387904; "),
        (pa.array(set_value(LABELS, 3, 2**64 - 1), pa.uint64()), r"row 3 has label 18446744073709551615; "),
        (set_value(LABELS, 3, -1), r"row 3 has label -1; "),
        (
            set_value(LABELS, 3, 2019),
            r"goes up to 2019, but no row has the label 3 ... 2018; .* dataset.n_classes=2020 if",
        ),
        ([2 * c for c in LABELS], r"goes up to 4, but no row has the label 1, 3; "),
        ([0] * 40, r"has the single label 0: there is nothing to learn; set dataset.n_classes=2 if"),
        (set_value([float(c) for c in LABELS], 3, 1.5), r"row 3 has label 1.5; labels are texts, or whole numbers"),
        (set_value([float(c) for c in LABELS], 3, float("inf")), r"row 3 has label inf; "),
        (set_value([float(c) for c in LABELS], 3, float("nan")), r"row 3 is empty"),
        (set_value(LABELS, 3, None), r"row 3 is empty"),
        ([None] * 40, r"row 0 is empty"),
        (set_value(LETTERS, 3, " "), r"row 3 is empty"),
        (
            set_value([str(c) for c in LABELS], 3, "x"),
            r"row 3 holds 'x' among whole numbers: labels must be all whole",
        ),
        ([[1]] * 40, r"holds list<element: int64>; labels are texts"),
        ([f"c{k}" for k in range(40)] * 2, None),
    ],
)
def test_invalid_labels_are_rejected_with_their_row(tmp_path: Path, labels: Any, expected_text: str | None) -> None:
    """Some were a hang, an abort or a traceback before they had a line."""
    n = len(labels)
    write_both_parts(tmp_path, n, label=labels)
    if expected_text is None:
        assert make_folder_dataset(tmp_path).load(0).n_classes == 40
        return
    with pytest.raises(DataError, match=rf"dataset.label: .*train.parquet: column 'label',? {expected_text}"):
        make_folder_dataset(tmp_path).load(0)


@pytest.mark.parametrize(
    ("labels", "ids", "names"),
    [
        (LETTERS, [0, 1, 2, 0], ("cat", "dog", "eel")),
        (pa.array(LETTERS).dictionary_encode(), [0, 1, 2, 0], ("cat", "dog", "eel")),
        ([str(c) for c in [10, 2, 1, 0, 3, 4, 5, 6, 7, 8, 9] * 4][:40], [10, 2, 1, 0], ()),
        ([f"+{c}" for c in LABELS], [0, 1, 2, 0], ()),
        ([str(c + 1) for c in LABELS], [0, 1, 2, 0], ("1", "2", "3")),
        (["1", "01", "0", "1"] * 10, [2, 1, 0, 2], ("0", "01", "1")),
        ([float(c) for c in LABELS], [0, 1, 2, 0], ()),
        ([k % 2 == 0 for k in range(40)], [1, 0, 1, 0], ()),
    ],
)
def test_texts_fractions_and_booleans_become_class_numbers(
    tmp_path: Path, labels: Any, ids: list[int], names: tuple[str, ...]
) -> None:
    """Texts are numbered in sorted order; texts, fractions and truth values that are whole numbers are those."""
    write_both_parts(tmp_path, label=labels)
    raw = make_folder_dataset(tmp_path).load(0)
    assert (raw.train_y[:4].tolist(), raw.test_y[:4].tolist(), tuple(raw.class_names)) == (ids, ids, names)


def test_with_n_classes_numeric_texts_are_class_numbers(tmp_path: Path) -> None:
    write_both_parts(tmp_path, label=[str(2 * c) for c in LABELS])
    raw = make_folder_dataset(tmp_path, n_classes=5).load(0)
    assert (raw.train_y[:4].tolist(), raw.n_classes) == ([0, 2, 4, 0], 5)
    assert make_folder_dataset(tmp_path).load(0).class_names == ("0", "2", "4")


def test_mixed_label_types_of_train_and_test_are_rejected(tmp_path: Path) -> None:
    write_both_parts(tmp_path, label=LETTERS)
    write_part(tmp_path, "test", x=[1.0], label=[0])
    with pytest.raises(DataError, match=r"test.parquet: column 'label' mixes texts and numbers with that of .*train"):
        make_folder_dataset(tmp_path).load(0)
    write_part(tmp_path, "test", x=[1.0], label=["fox"])
    with pytest.raises(DataError, match=r"labels that no training row has: fox; .* dataset.n_classes=4 if"):
        make_folder_dataset(tmp_path).load(0)
    raw = make_folder_dataset(tmp_path, n_classes=5).load(0)
    assert (raw.test_y.tolist(), raw.n_classes, raw.class_names) == ([3], 5, ("cat", "dog", "eel", "fox"))
