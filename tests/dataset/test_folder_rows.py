"""Rows that can't be used, and what is made of the others: standardised, or cut for the test part."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.errors import DataError, OptionError
from folder_tables import LABELS, make_folder_dataset, set_value, write_both_parts, write_part
from optional_values import not_none


@pytest.mark.parametrize(
    ("cell", "expected_text"),
    [
        ("oops", "holds 'oops', which is not a number"),
        ("", "is empty"),
        ("inf", "has a value that is NaN or infinite"),
        ("1e300", "holds 1e\\+300, which float32 can't hold"),
        ("1e400", "has a value that is NaN or infinite"),
    ],
)
@pytest.mark.parametrize("part", ["train", "test"])
def test_an_invalid_cell_is_rejected_or_dropped_as_the_options_say(
    tmp_path: Path, part: str, cell: str, expected_text: str
) -> None:
    """One bad cell makes a column a text, which is left out of the inputs with a warning."""
    rows = [f"{k},{k / 2},{k % 2}" for k in range(8)]
    for name in ("train", "test"):
        lines = set_value(rows, 5, f"5,{cell},1") if name == part else rows
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    remedy = "; correct it, or choose dataset.missing=drop.* or dataset.missing=mean"
    with pytest.raises(DataError, match=rf"^dataset.path: .*{part}.csv: column 'b', row 5 {expected_text}{remedy}"):
        make_folder_dataset(tmp_path).load(0)
    dropped = make_folder_dataset(tmp_path, missing="drop").load(0)
    assert (len(dropped.train_y), len(dropped.test_y)) == ((7, 8) if part == "train" else (8, 7))
    assert dropped.inputs == f"2: a, b; 1 of 8 rows of {part}.csv dropped, cells are missing"
    full = make_folder_dataset(tmp_path, missing="mean").load(0)
    mean = np.mean([0, 0.5, 1, 1.5, 2, 3, 3.5]) if part == "train" else np.mean(np.arange(8) / 2)
    assert (full.train_x if part == "train" else full.test_x)[5].tolist() == pytest.approx([5, mean])
    filled_counts = "1 training and 0" if part == "train" else "0 training and 1"
    assert full.inputs == f"2: a, b; {filled_counts} test cells filled with the means of the training rows"


def test_missing_drop_removes_incomplete_rows_and_errors_keep_file_row_numbers(tmp_path: Path) -> None:
    rows = set_value(set_value([[float(k), 1.0] for k in range(40)], 4, None), 5, [1.0, None])
    write_both_parts(tmp_path, v=rows, who=set_value(["a", "b"] * 20, 6, None), label=set_value(LABELS, 7, None))
    raw = make_folder_dataset(tmp_path, features="v", client="who", missing="drop").load(0)
    assert raw.train_x[:, 0].tolist() == [k for k in range(40) if k not in (4, 5, 6, 7)]
    write_both_parts(tmp_path, x=set_value([0.5] * 40, 3, None), label=set_value(LABELS, 9, -1))
    with pytest.raises(DataError, match=r"row 9 has label -1"):
        make_folder_dataset(tmp_path, missing="drop").load(0)
    write_both_parts(tmp_path, x=[None] * 40, y=set_value(range(40), 0, None))
    assert make_folder_dataset(tmp_path, missing="drop").load(0).inputs.startswith("1: y (left out: x)")
    write_both_parts(tmp_path, x=[float("nan")] * 40)
    with pytest.raises(DataError, match=r"^dataset.missing=drop: .* has no row without a missing cell"):
        make_folder_dataset(tmp_path, missing="drop").load(0)
    with pytest.raises(DataError, match=r"column 'x' has no number in any training row: no mean fills"):
        make_folder_dataset(tmp_path, missing="mean").load(0)


def test_inputs_are_standardised_by_the_training_rows(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(3, 2, (2, 40))
    for part, shift in (("train", 0), ("test", 100)):
        write_part(tmp_path, part, a=x[0] + shift, b=x[1] + shift, same=[7.0] * 40, label=LABELS)
    raw = make_folder_dataset(tmp_path, standardise="train").load(0)
    np.testing.assert_allclose(raw.train_x.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(raw.train_x.std(0), [1, 1, 0], rtol=1e-5)
    np.testing.assert_allclose(raw.test_x[:, 0], (x[0] + 100 - x[0].mean()) / x[0].std(), rtol=1e-4)
    assert raw.test_x[:, 2].tolist() == [0] * 40
    assert raw.inputs.endswith("; standardised by mean and deviation of the 40 training rows")
    np.testing.assert_allclose(not_none(raw.feature_moments), [[*x.mean(1), 7], [*x.std(1), 1]], rtol=1e-5)
    with pytest.raises(OptionError, match=r"^scale must be 1 with standardise=train, which cancels a scale, got 255"):
        make_folder_dataset(tmp_path, standardise="train", scale=255)


def test_test_share_cuts_rows_of_each_class_of_each_client(tmp_path: Path) -> None:
    owner = [f"site{k // 3 % 4}" for k in range(400)]
    write_part(tmp_path, "train", x=np.arange(400.0), who=owner, label=[k % 3 for k in range(400)])
    dataset = make_folder_dataset(tmp_path, test_share=0.25, client="who", standardise="train")
    raw, repeat, other_data = dataset.load(0), dataset.load(0), dataset.load(1)
    assert raw.inputs.startswith("1: x (left out: who); 100 rows cut for the test part; standardised by mean and ")
    assert raw.inputs.endswith("of the 300 training rows")
    pairs = np.stack([not_none(raw.test_owner), raw.test_y])
    assert set(np.unique(pairs, axis=1, return_counts=True)[1]) <= {8, 9}
    values = np.concatenate([raw.train_x, raw.test_x])[:, 0]
    assert len(np.unique(values)) == 400
    np.testing.assert_array_equal(raw.test_x, repeat.test_x)
    assert not np.array_equal(raw.test_y, other_data.test_y) or not np.array_equal(
        not_none(raw.test_owner), not_none(other_data.test_owner)
    )
    write_part(tmp_path, "train", x=[0.0, 1.0, 2.0, 3.0], label=[0, 1, 0, 1])
    assert len(make_folder_dataset(tmp_path, test_share=0.25).load(0).test_y) == 1
    write_part(tmp_path, "train", x=[0.0, 1.0], label=[0, 1])
    with pytest.raises(DataError, match=r"^dataset.test_share=0.25: there are too few rows"):
        make_folder_dataset(tmp_path, test_share=0.25).load(0)
    write_part(tmp_path, "test", x=[1.0], label=[0])
    with pytest.raises(
        DataError, match=r"^dataset.test_share must be null: the data have a test part \(.*test.parquet"
    ):
        make_folder_dataset(tmp_path, test_share=0.25).load(0)


def test_rows_of_the_validation_file_belong_to_the_server(tmp_path: Path) -> None:
    """Its rows are read as the others: labels by the same names, gaps and moments of the training rows."""
    write_part(tmp_path, "train", x=[0.0, 2.0, 4.0, 6.0], label=["b", "c", "b", "c"])
    write_part(tmp_path, "test", x=[1.0, None], label=["b", "c"])
    write_part(tmp_path, "valid", x=[9.0, None, 3.0], label=["c", "c", "b"])
    raw = make_folder_dataset(tmp_path, missing="mean", standardise="train").load(0)
    x, y = not_none(raw.valid)
    assert y.tolist() == [1, 1, 0]
    np.testing.assert_allclose(x[:, 0] * np.sqrt(5) + 3, [9, 3, 3], rtol=1e-6)  # mean 3, variance (9 + 1 + 1 + 9) / 4
    assert "0 training, 1 test and 1 validation cells filled" in raw.inputs
    assert raw.inputs.endswith("3 validation rows are the server's")
    dropped = make_folder_dataset(tmp_path, missing="drop").load(0)
    assert (len(dropped.test_y), len(not_none(dropped.valid)[1])) == (1, 2)
    assert "1 of 3 rows of valid.parquet dropped" in dropped.inputs


def test_valid_none_ignores_the_validation_file(tmp_path: Path) -> None:
    write_both_parts(tmp_path)
    write_part(tmp_path, "valid", x=["not", "read"])
    raw = make_folder_dataset(tmp_path, valid="none").load(0)
    assert (raw.inputs, raw.valid) == ("1: x; valid.parquet isn't read", None)
    with pytest.raises(DataError, match=r"valid.parquet has no column 'label'"):
        make_folder_dataset(tmp_path).load(0)


def test_test_share_leaves_the_validation_file_unchanged(tmp_path: Path) -> None:
    write_part(tmp_path, "train", x=np.arange(40.0), label=np.arange(40) % 2)
    write_part(tmp_path, "valid", x=[1.0, 2.0], label=[0, 1])
    with pytest.raises(DataError, match=r"cuts a fifth of train.parquet, .*; rename valid.parquet to test.parquet if"):
        make_folder_dataset(tmp_path).load(0)
    raw = make_folder_dataset(tmp_path, test_share=0.25).load(0)
    assert (len(raw.train_y), len(raw.test_y), len(not_none(raw.valid)[1])) == (30, 10, 2)


@pytest.mark.parametrize(
    ("columns", "fault_name"),
    [
        ({"x": [1.0], "label": [5]}, r"valid.parquet: column 'label' has labels that no training row has: 5"),
        (
            {"x": [1.0], "label": ["a"]},
            r"valid.parquet: column 'label' mixes texts and numbers with that of",
        ),
        ({"x": [[1.0, 2.0]], "label": [0]}, r"valid.parquet: column 'x' must hold numbers"),
    ],
)
def test_an_invalid_validation_file_is_rejected_with_the_reason(
    tmp_path: Path, columns: dict[str, Any], fault_name: str
) -> None:
    write_both_parts(tmp_path)
    write_part(tmp_path, "valid", **columns)
    with pytest.raises(DataError, match=fault_name):
        make_folder_dataset(tmp_path).load(0)


def test_validation_samples_must_have_the_shape_of_the_training_samples(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_part(tmp_path, part, x=[[1.0, 2.0], [2.0, 4.0]], label=[0, 1])
    write_part(tmp_path, "valid", x=[[1.0, 2.0, 3.0]], label=[0])
    with pytest.raises(DataError, match=r"valid.parquet: a sample has the shape \[3\], but one of .*train.*\[2\]"):
        make_folder_dataset(tmp_path, features="x").load(0)
