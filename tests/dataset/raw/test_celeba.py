"""CelebA's lists become tables that dataset=celeba reads."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset.celeba import Celeba
from fedcohort.dataset.raw import celeba
from fedcohort.errors import DataError
from optional_values import not_none
from raw_dataset_files import prepare_tables
from raw_dataset_files import write_celeba as raw_celeba


def test_raw_celeba_becomes_tables_with_a_client_per_celebrity(tmp_path: Path) -> None:
    source = raw_celeba(tmp_path / "raw")
    assert prepare_tables(celeba.plan_table_pieces(source, None), tmp_path / "made") == {
        "train": 6,
        "valid": 5,
        "test": 5,
    }
    table = pq.read_table(tmp_path / "made" / "valid.parquet")
    assert table.column_names == ["image", "celeb_id", "Smiling", "Male"]
    assert table["celeb_id"].to_pylist() == [8] * 5
    assert table["Smiling"].to_pylist() == [True, False, True, False, True]
    raw = Celeba(str(tmp_path / "made"), "hub", None, "sample", 1.0, 5, "uint8", None).load(0)
    assert np.bincount(not_none(raw.train_owner)).tolist() == [5, 4, 4]
    assert np.bincount(not_none(raw.test_owner)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("file", "line", "refusal"),
    [
        ("list_attr_celeba.txt", "000017.jpg 1 0", r"list_attr_celeba.txt, line 19: expected 2 values of 1 or -1"),
        ("list_attr_celeba.txt", "000017.jpg 1", r"list_attr_celeba.txt, line 19: expected 2 values"),
        ("list_attr_celeba.txt", "000017.jpg 1 1", r"line 19: 000017.jpg is missing in identity_CelebA.txt: add it"),
        ("identity_CelebA.txt", "000001.jpg 7", r"identity_CelebA.txt, line 17: 000001.jpg occurs in line 1"),
        ("list_eval_partition.txt", "000001.jpg 4", r"line 17: 000001.jpg occurs in line 1"),
    ],
)
def test_an_invalid_line_of_a_raw_list_is_rejected_with_its_number(
    tmp_path: Path, file: str, line: str, refusal: str
) -> None:
    source = raw_celeba(tmp_path)
    with (source / file).open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(DataError, match=refusal):
        celeba.plan_table_pieces(source, None)


@pytest.mark.parametrize(
    ("file", "old", "new", "refusal"),
    [
        (
            "identity_CelebA.txt",
            "000001.jpg 7",
            "000001.jpg Ann",
            "got '0', and in identity_CelebA.txt the identity a whole number, got 'Ann'",
        ),
        ("list_eval_partition.txt", "000001.jpg 0", "000001.jpg 4", "part must be 0, 1 or 2, got '4'"),
        ("list_attr_celeba.txt", "16\n", "17\n", "the first line says '17', but 16 images follow"),
        ("list_attr_celeba.txt", "Smiling Male", "Male Male", "the attribute 'Male' occurs twice"),
        ("list_attr_celeba.txt", "000002.jpg", "000001.jpg", "line 4: 000001.jpg occurs in line 3"),
    ],
)
def test_raw_lists_that_contradict_each_other_are_rejected(
    tmp_path: Path, file: str, old: str, new: str, refusal: str
) -> None:
    source = raw_celeba(tmp_path)
    (source / file).write_text((source / file).read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=refusal):
        celeba.plan_table_pieces(source, None)


def test_an_image_name_outside_of_the_folder_is_rejected(tmp_path: Path) -> None:
    source = raw_celeba(tmp_path / "raw")
    for file, values in (("list_attr_celeba", " 1 1"), ("identity_CelebA", " 3"), ("list_eval_partition", " 0")):
        with (source / f"{file}.txt").open("a") as stream:
            stream.write(f"../../secret.jpg{values}\n")
    with pytest.raises(DataError, match=r"../../secret.jpg leads out of the folder"):
        celeba.plan_table_pieces(source, None)


def test_an_unreadable_raw_list_is_named_in_the_error(tmp_path: Path) -> None:
    source = raw_celeba(tmp_path)
    (source / "identity_CelebA.txt").write_bytes(b"000001.jpg \xff\n")
    with pytest.raises(DataError, match=r"^/.*identity_CelebA.txt is no UTF-8 text \(byte 0xff after line 0\)"):
        celeba.plan_table_pieces(source, None)
    (source / "identity_CelebA.txt").write_text("")
    (source / "list_attr_celeba.txt").write_text("")
    with pytest.raises(DataError, match=r"list_attr_celeba.txt names no image"):
        celeba.plan_table_pieces(source, None)
