"""A folder of images becomes tables that dataset=folder reads."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset.raw import imagefolder
from fedcohort.errors import DataError
from folder_tables import make_folder_dataset
from raw_dataset_files import prepare_tables, save_image


def test_folders_become_classes_and_train_test_and_validation_parts(tmp_path: Path) -> None:
    pixels = {}
    for part, n in (("train", 5), ("val", 2), ("test", 3)):
        for i in range(n):
            name = f"{part}/{'dog' if i % 2 else 'cat'}/{i}.png"
            pixels[name] = save_image(tmp_path / "raw" / name, i)
    (tmp_path / "raw" / "train" / "cat" / "readme.txt").write_text("no image")
    assert prepare_tables(imagefolder.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made") == {
        "train": 5,
        "valid": 2,
        "test": 3,
    }
    table = pq.read_table(tmp_path / "made" / "train.parquet")
    assert table["label"].to_pylist() == ["cat"] * 3 + ["dog"] * 2
    raw = make_folder_dataset(tmp_path / "made", features="image").load(0)
    assert raw.class_names == ("cat", "dog")
    np.testing.assert_array_equal(raw.train_x[0], pixels["train/cat/0.png"])
    np.testing.assert_array_equal(raw.test_x[-1], pixels["test/dog/1.png"])


def test_without_part_folders_all_images_are_training_images(tmp_path: Path) -> None:
    for i in range(40):
        save_image(tmp_path / "raw" / ("a" if i % 2 else "b") / f"{i}.png", i)
    assert prepare_tables(imagefolder.plan_table_pieces(tmp_path / "raw", 6), tmp_path / "made") == {"train": 40}
    raw = make_folder_dataset(tmp_path / "made", features="image", test_share=0.2).load(0)
    assert raw.train_x.shape == (32, 3, 6, 6), "made smaller"


def test_a_folder_without_usable_images_is_rejected_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "raw" / "train").mkdir(parents=True)
    with pytest.raises(DataError, match="raw/train has no folders of images"):
        imagefolder.plan_table_pieces(tmp_path / "raw", None)
    (tmp_path / "raw" / "train" / "eel").mkdir()
    (tmp_path / "raw" / "train" / "eel" / "0.tiff").write_bytes(b"")
    with pytest.raises(DataError, match=r"train/eel holds no images \(.bmp, .jpeg, .*\), but 0.tiff: convert"):
        imagefolder.plan_table_pieces(tmp_path / "raw", None)
    (tmp_path / "raw" / "train" / "eel" / "0.tiff").unlink()
    file = tmp_path / "raw" / "train" / "cat" / "0.png"
    save_image(file)
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(DataError, match=r"cat/0.png can't be read as an image"):
        prepare_tables(imagefolder.plan_table_pieces(tmp_path / "raw", None), tmp_path / "made")
