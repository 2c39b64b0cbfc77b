"""What a user is warned of, and all problems in one message."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import DataError
from folder_tables import make_folder_dataset, set_value, write_both_parts, write_part


@pytest.mark.parametrize(
    ("cells", "notice"),
    [
        ("0,13", "numbers with decimal commas as text ('0,13') and is left out: read them with dataset.decimal=comma"),
        ("12 %", "percentages as text ('12 %') and is left out: write plain numbers"),
        ("1,234.5", "numbers with thousands separators as text ('1,234.5') and is left out: write plain numbers"),
        ("[1.5, 2.5]", "lists as text ('[1.5, 2.5]') and is left out: write the table as Parquet, with lists"),
        ("31.12.2020", "dates as text ('31.12.2020') and is left out: write them as 2024-12-31"),
    ],
)
def test_numbers_and_dates_written_as_text_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cells: str, notice: str
) -> None:
    write_both_parts(tmp_path, rate=[cells] * 40)
    make_folder_dataset(tmp_path).load(0)
    assert f"column 'rate' holds {notice}" in caplog.text


def test_more_columns_left_out_than_taken_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_both_parts(tmp_path, sex=["f", "m"] * 20, note=[f"n{k}" for k in range(40)])
    make_folder_dataset(tmp_path).load(0)
    assert "2 columns are left out (sex, note) and only 1 used as inputs: dataset.categories=auto" in caplog.text
    caplog.clear()
    make_folder_dataset(tmp_path, categories="auto").load(0)
    assert not caplog.text


@pytest.mark.parametrize(("value", "shown_text"), [(4e4, "40,000"), (2e-4, "0.0002")])
def test_features_far_from_unit_scale_propose_to_standardise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: float, shown_text: str
) -> None:
    write_both_parts(tmp_path, income=np.full(40, value))
    make_folder_dataset(tmp_path).load(0)
    assert f"1 of 2 features are far from unit scale (root mean square: income ({shown_text}))" in caplog.text
    assert "dataset.standardise=true" in caplog.text
    caplog.clear()
    raw = make_folder_dataset(tmp_path, standardise=True).load(0)
    assert not caplog.text
    assert raw.feature_moments is not None


def test_spaces_around_labels_are_removed_and_labels_that_differ_in_case_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_both_parts(tmp_path, label=[" yes", "yes", "no", "no "] * 10)
    raw = make_folder_dataset(tmp_path).load(0)
    assert raw.class_names == ("no", "yes")
    assert raw.inputs.endswith("; spaces around 40 labels removed")
    write_both_parts(tmp_path, label=["Yes", "yes", "no", "no"] * 10)
    make_folder_dataset(tmp_path).load(0)
    assert "labels that differ only in case, which are different classes: ['Yes', 'yes']" in caplog.text


def test_all_problems_are_one_message(tmp_path: Path) -> None:
    """A table without the label, without a test table and with gaps in two columns."""
    write_part(
        tmp_path,
        "train",
        x=set_value([0.5] * 40, 3, None),
        z=set_value([0.5] * 40, 5, None),
        kind=["a", "b"] * 20,
    )
    with pytest.raises(DataError) as raised:
        make_folder_dataset(tmp_path).load(0)
    lines = str(raised.value).splitlines()
    assert lines[0] == "the data have 4 problems:"
    assert "has no test table: dataset.test_share=0.2" in lines[1]
    assert "has no column 'label'; it has x, z, kind" in lines[2]
    assert "column 'x', row 3 is empty" in lines[3]
    assert "column 'z', row 5 is empty" in lines[4]
    assert lines[5].startswith("correct it, or choose dataset.missing=drop")
    assert lines[6] == f"fedcohort data {tmp_path} proposes options for these files"
