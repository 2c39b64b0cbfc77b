"""WaterBirds' list becomes tables that dataset=waterbirds reads."""

from pathlib import Path

import pytest

from fedcohort.dataset.raw import waterbirds
from fedcohort.dataset.waterbirds import Waterbirds
from fedcohort.errors import DataError
from optional_values import not_none
from raw_dataset_files import prepare_tables
from raw_dataset_files import write_waterbirds as raw_waterbirds


def test_raw_waterbirds_become_tables_with_label_and_place(tmp_path: Path) -> None:
    source = raw_waterbirds(tmp_path / "raw")
    assert prepare_tables(waterbirds.plan_table_pieces(source, 16), tmp_path / "made") == {
        "train": 4,
        "valid": 4,
        "test": 4,
    }
    raw = Waterbirds(str(tmp_path / "made"), "hub", None, "auto", 14).load(0)
    assert raw.train_x.shape == (4, 3, 14, 14)
    assert raw.train_y.tolist() == [1, 0, 1, 0]
    assert not_none(raw.train_attribute).tolist() == [0, 0, 1, 1]
    assert not_none(raw.test_attribute).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("before", "after", "refusal"),
    [
        ("y,split,place", "label,split,place", r"must have one column 'y', but has img_id, img_filename, label"),
        (",1,0,0,", ",1,3,0,", r"metadata.csv, line 2: split is '3'; it must be one of 0, 1, 2"),
        (",1,0,0,", ",,0,0,", r"line 2: y is ''; it must be one of 0, 1"),
        (",1,0,0,", ",1,0,sea,", r"line 2: place is 'sea'"),
        ("000.Bird/bird_0.jpg", "../../bird.jpg", r"../../bird.jpg leads out of the folder"),
        ("000.Bird/bird_0.jpg", "000.Bird/none.jpg", r"has no 000.Bird/none.jpg"),
    ],
)
def test_an_invalid_line_of_the_metadata_is_rejected_with_its_number(
    tmp_path: Path, before: str, after: str, refusal: str
) -> None:
    source = raw_waterbirds(tmp_path / "raw")
    file = source / "metadata.csv"
    file.write_text(file.read_text().replace(before, after, 1))
    with pytest.raises(DataError, match=refusal):
        waterbirds.plan_table_pieces(source, None)


def test_a_metadata_file_in_another_encoding_is_rejected(tmp_path: Path) -> None:
    source = raw_waterbirds(tmp_path)
    file = source / "metadata.csv"
    file.write_bytes(file.read_bytes().replace(b"bird_0", b"b\xe4rd_0"))
    with pytest.raises(DataError, match=r"^/.*metadata.csv is no UTF-8 text \(byte 0xe4"):
        waterbirds.plan_table_pieces(source, None)
